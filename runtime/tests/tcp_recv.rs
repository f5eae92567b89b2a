//! Receiving into the shard's buffers, through the public interface.

use std::io::{Read, Write};
use std::net::TcpStream as StdStream;
use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;
use std::{future::poll_fn, io};

use greenroom_runtime::buffer::PooledBuf;
use greenroom_runtime::net::{TcpListener, TcpStream};
use greenroom_runtime::{Builder, ShardCounts, current_shard, spawn, yield_now};

fn on_shard<F>(test: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = io::Result<()>> + 'static,
{
    on_shard_of(Builder::new(), test);
}

fn on_shard_of<F>(builder: Builder, test: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = io::Result<()>> + 'static,
{
    let runtime = builder.shards(1).start().unwrap();
    runtime.run_on(0, test).unwrap();
}

/// A stream of the shard, and its other end, which is blocking and ours.
fn connected() -> io::Result<(TcpStream, StdStream)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let near = StdStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    far.set_nodelay(true)?;
    Ok((TcpStream::from_std(near)?, far))
}

/// Polls a future once; its output if it is ready.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Lets the shard visit the kernel until `is_done`, within reason.
async fn turns_until(mut is_done: impl FnMut(ShardCounts) -> bool) {
    for _ in 0..10_000 {
        if is_done(counts()) {
            return;
        }
        // A round through the kernel that takes nothing from anybody.
        let (mut near, far) = connected().unwrap();
        drop(far);
        assert_eq!(near.read([0; 1]).await.0.unwrap(), 0);
    }
    panic!("it did not come to that: {:?}", counts());
}

fn counts() -> ShardCounts {
    ShardCounts::current().unwrap()
}

fn lent(counts: ShardCounts) -> usize {
    counts.pool_total - counts.pool_free
}

async fn recv(stream: &mut TcpStream) -> io::Result<PooledBuf> {
    stream
        .recv()
        .await?
        .ok_or(io::ErrorKind::UnexpectedEof.into())
}

#[test]
fn bytes_are_lent_and_given_back() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        assert_eq!(counts().pool_total, 0, "made when it is needed");
        peer.write_all(b"hello")?;
        let bytes = recv(&mut stream).await?;
        assert_eq!(*bytes, *b"hello");
        assert!(bytes.is_pooled());
        assert_eq!((counts().pool_total, lent(counts())), (512, 1));
        drop(bytes);
        assert_eq!(lent(counts()), 0);
        Ok(())
    });
}

#[test]
fn bytes_come_before_the_end_and_the_end_stays() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        peer.write_all(b"last words")?;
        drop(peer);
        assert_eq!(*recv(&mut stream).await?, *b"last words");
        for _ in 0..3 {
            assert!(stream.recv().await?.is_none());
            assert_eq!(stream.read([0; 4]).await.0?, 0);
        }
        Ok(())
    });
}

#[test]
fn a_half_closed_peer_still_gets_its_answer() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        peer.write_all(b"request")?;
        peer.shutdown(std::net::Shutdown::Write)?;
        assert_eq!(*recv(&mut stream).await?, *b"request");
        assert!(stream.recv().await?.is_none());
        stream.write_all("answer").await.0?;
        drop(stream);
        let mut answer = String::new();
        peer.read_to_string(&mut answer)?;
        assert_eq!(answer, "answer");
        Ok(())
    });
}

#[test]
fn a_reset_is_an_error() {
    on_shard(|| async {
        let (mut stream, peer) = connected()?;
        assert!(poll_once(pin!(stream.recv())).await.is_none());
        socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO))?;
        drop(peer);
        let error = stream.recv().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        Ok(())
    });
}

#[test]
fn receives_and_reads_take_turns_without_loss() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        let sender = std::thread::spawn(move || {
            for byte in 0..=255_u8 {
                peer.write_all(&[byte; 40]).unwrap();
            }
        });
        let mut received = Vec::new();
        for attempt in 0_usize.. {
            let done = match attempt % 4 {
                // Dropped while it waits, or when it is done.
                0 => match poll_once(pin!(stream.recv())).await {
                    Some(bytes) => bytes?.map(|bytes| bytes.to_vec()),
                    None => Some(Vec::new()),
                },
                1 => stream.recv().await?.map(|bytes| bytes.to_vec()),
                2 => {
                    let (count, buffer) = stream.read(vec![0; 1 + attempt % 7]).await;
                    (count? > 0).then_some(buffer)
                }
                _ => {
                    let mut buffer = [0; 3];
                    match stream.try_read(&mut buffer) {
                        Ok(count) => (count > 0).then(|| buffer[..count].to_vec()),
                        Err(error) => {
                            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                            yield_now().await;
                            Some(Vec::new())
                        }
                    }
                }
            };
            match done {
                Some(bytes) => received.extend_from_slice(&bytes),
                None => break,
            }
        }
        sender.join().unwrap();
        let expected: Vec<u8> = (0..=255_u8).flat_map(|byte| [byte; 40]).collect();
        assert!(received == expected);
        Ok(())
    });
}

#[test]
fn idle_connections_hold_no_buffer() {
    let builder = Builder::new().recv_buffers(4);
    on_shard_of(builder, || async {
        let mut tasks = Vec::new();
        let mut peers = Vec::new();
        for _ in 0..50 {
            let (mut stream, peer) = connected()?;
            peers.push(peer);
            tasks.push(spawn(async move {
                let bytes = recv(&mut stream).await.unwrap();
                assert_eq!(*bytes, *b"x");
                bytes.is_pooled()
            }));
        }
        turns_until(|counts| counts.live_operations >= 50).await;
        assert_eq!(lent(counts()), 0);
        for (peer, task) in peers.iter_mut().zip(tasks) {
            peer.write_all(b"x")?;
            assert!(task.await.unwrap());
        }
        Ok(())
    });
}

#[test]
fn held_buffers_do_not_stop_other_connections() {
    let builder = Builder::new().recv_buffers(2).recv_buffer_bytes(64);
    on_shard_of(builder, || async {
        let mut held = Vec::new();
        let mut streams = Vec::new();
        // More than there are buffers, none of which is given back.
        for round in 0..20_u8 {
            let (mut stream, mut peer) = connected()?;
            assert!(poll_once(pin!(stream.recv())).await.is_none());
            yield_now().await;
            peer.write_all(&[round; 10])?;
            let bytes = recv(&mut stream).await?;
            assert_eq!(*bytes, [round; 10]);
            held.push(bytes);
            streams.push((stream, peer));
        }
        assert_eq!(held.iter().filter(|bytes| bytes.is_pooled()).count(), 2);
        assert_eq!(counts().pool_free, 0);
        held.clear();
        assert_eq!(counts().pool_free, 2);
        // With buffers to spare they are used again.
        let (stream, peer) = &mut streams[19];
        peer.write_all(b"again")?;
        let mut bytes = recv(stream).await?;
        if !bytes.is_pooled() {
            peer.write_all(b"again")?;
            bytes = recv(stream).await?;
        }
        assert!(bytes.is_pooled());
        Ok(())
    });
}

#[test]
fn a_stream_that_is_not_read_holds_a_bounded_part_of_the_pool() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        assert!(poll_once(pin!(stream.recv())).await.is_none());
        let sender = std::thread::spawn(move || peer.write_all(&vec![7; 8 << 20]));
        turns_until(|counts| lent(counts) >= 32).await;
        for _ in 0..50 {
            yield_now().await;
        }
        let held = lent(counts());
        assert!(held < 160, "{held} buffers of 512 are held by one stream");
        let mut total = 0;
        while let Some(bytes) = stream.recv().await? {
            assert!(bytes.iter().all(|&byte| byte == 7));
            total += bytes.len();
        }
        assert_eq!(total, 8 << 20);
        assert_eq!(lent(counts()), 0);
        sender.join().unwrap()
    });
}

#[test]
fn dropping_a_stream_in_any_state_returns_its_buffers() {
    on_shard(|| async {
        for round in 0..200 {
            let (mut stream, mut peer) = connected()?;
            let recv = poll_once(pin!(stream.recv())).await;
            assert!(recv.is_none());
            if round % 2 == 0 {
                yield_now().await;
            }
            peer.write_all(&[1; 20_000])?;
            if round % 3 == 0 {
                yield_now().await;
            }
            if round % 5 == 0 {
                drop(stream.recv().await?);
            }
            drop(stream);
            if round % 7 == 0 {
                drop(peer);
            }
        }
        turns_until(|counts| counts.live_operations == 1).await;
        assert_eq!(lent(counts()), 0);
        Ok(())
    });
}

#[test]
fn bytes_outlive_their_stream_and_their_shard() {
    let runtime = Builder::new().shards(1).start().unwrap();
    thread_local! {
        static KEPT: std::cell::RefCell<Option<PooledBuf>> = const { std::cell::RefCell::new(None) };
    }
    runtime.run_on(0, || async {
        let (mut stream, mut peer) = connected().unwrap();
        peer.write_all(b"kept").unwrap();
        let bytes = recv(&mut stream).await.unwrap();
        drop(stream);
        assert_eq!(*bytes, *b"kept");
        // Dropped with the thread, after the shard.
        KEPT.set(Some(bytes));
    });
    drop(runtime);
}

#[test]
fn received_bytes_can_be_written_as_they_are() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            while let Some(bytes) = stream.recv().await.unwrap() {
                stream.write_all(bytes).await.0.unwrap();
            }
        })
        .detach();
        let (mut read_half, mut write_half) = TcpStream::connect(address).await?.into_split();
        let sent: Vec<u8> = (0..1_000_000_u32).map(|at| at.to_le_bytes()[1]).collect();
        let expected = sent.clone();
        let writer = spawn(async move { write_half.write_all(sent).await.0 });
        let mut echoed = Vec::new();
        while let Some(bytes) = read_half.recv().await? {
            echoed.extend_from_slice(&bytes);
        }
        writer.await.unwrap()?;
        assert!(echoed == expected);
        Ok(())
    });
}

#[test]
fn peeked_bytes_stay() {
    on_shard(|| async {
        for armed in [false, true] {
            let (mut stream, mut peer) = connected()?;
            if armed {
                assert!(poll_once(pin!(stream.recv())).await.is_none());
            }
            peer.write_all(b"abc")?;
            let mut buffer = [0; 2];
            for _ in 0..2 {
                assert_eq!(stream.peek(&mut buffer).await?, 2);
                assert_eq!(&buffer, b"ab");
            }
            assert_eq!(*recv(&mut stream).await?, *b"abc");
            drop(peer);
            assert_eq!(stream.peek(&mut buffer).await?, 0);
        }
        Ok(())
    });
}

#[test]
fn a_size_out_of_range_is_refused_with_both_values() {
    for (count, bytes) in [
        (0, 8192),
        (3, 8192),
        (65536, 8192),
        (4, 63),
        (4, (1 << 20) + 1),
    ] {
        let builder = Builder::new().recv_buffers(count).recv_buffer_bytes(bytes);
        let error = builder.start().unwrap_err();
        assert!(error.is_config());
        let text = error.to_string();
        assert!(
            text.contains(&format!("{count} receive buffers of {bytes} bytes")),
            "{text}"
        );
    }
}

#[test]
fn completions_that_gather_are_neither_lost_nor_kept() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 100;
    let builder = Builder::new().shards(2);
    let runtime = builder.gather(Duration::from_millis(2)).start().unwrap();
    let (listening, address) = mpsc::channel();
    runtime
        .handle()
        .spawn_on(0, move || async move {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listening.send(listener.local_addr().unwrap()).unwrap();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                spawn(async move {
                    while let Some(bytes) = stream.recv().await.unwrap() {
                        stream.write_all(bytes.to_vec()).await.0.unwrap();
                    }
                })
                .detach();
            }
        })
        .detach();
    let address = address.recv().unwrap();
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|_| StdStream::connect(address).unwrap())
        .collect();
    for round in 0..ROUNDS {
        // In bunches, then fewer than the shard has learned to expect, then one at a time.
        let share = [CLIENTS, 3, 1][round * 3 / ROUNDS];
        for client in &mut clients[..share] {
            client.write_all(b"ping").unwrap();
        }
        // A message to the shard, which may be waiting for more completions than will come.
        let elsewhere = runtime.handle().spawn_on(0, || async { current_shard() });
        for client in &mut clients[..share] {
            let mut answer = [0; 4];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"ping");
        }
        let told = runtime.block_on(elsewhere).unwrap();
        assert_eq!(told.unwrap().index(), 0);
    }
    drop(clients);
    assert_eq!(runtime.shutdown().leaked_operations(), 0);
}
