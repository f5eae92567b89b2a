//! Connections whose peer sends no more, and still receives: news that the kernel repeats for as long as they live.

use std::future::poll_fn;
use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, TcpListener as StdListener, TcpStream as StdStream};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use greenroom_runtime::net::{TcpStream, UnixStream};
use greenroom_runtime::{Builder, ShardCounts, blocking, spawn, yield_now};

use crate::support::{on_shard, start, turns};

/// More than any socket buffers.
const MUCH: usize = 1 << 25;

/// A connection whose peer has shut down sending.
fn half_closed() -> io::Result<(TcpStream, StdStream)> {
    let listener = StdListener::bind("127.0.0.1:0")?;
    let peer = StdStream::connect(listener.local_addr()?)?;
    let (stream, _peer) = listener.accept()?;
    peer.shutdown(Shutdown::Write)?;
    // A connection that is kept open by mistake fails the test instead of hanging it.
    peer.set_read_timeout(Some(Duration::from_secs(20)))?;
    Ok((TcpStream::from_std(stream)?, peer))
}

/// Reads to the end and tells how much there was.
async fn read_to_end(mut peer: impl Read + Send + 'static) -> io::Result<usize> {
    blocking::run(move || peer.read_to_end(&mut Vec::new()))
        .await
        .unwrap()
}

fn live_operations() -> usize {
    ShardCounts::current().unwrap().live_operations
}

#[test]
fn a_dropped_write_ends_wherever_the_kernel_has_it() {
    on_shard(|| async {
        let idle = live_operations();
        for round in 0..12 {
            let (mut stream, peer) = half_closed()?;
            {
                let mut write = pin!(stream.write_all(vec![1; MUCH]));
                start(write.as_mut()).await;
                for _ in 0..round {
                    yield_now().await;
                }
                if round % 4 == 3 {
                    turns().await;
                }
            }
            drop(stream);
            // Before anybody reads: a reader makes room, and all of it may be on its way before the write is cancelled.
            while live_operations() > idle {
                turns().await;
            }
            let received = read_to_end(peer).await?;
            assert!(received < MUCH, "round {round}: {received} bytes");
        }
        Ok(())
    });
}

#[test]
fn writes_that_wait_do_not_hold_up_the_end() {
    for round in 0..4 {
        let runtime = Builder::new().shards(1).start().unwrap();
        let peers = runtime.run_on(0, move || async move {
            let mut peers = Vec::new();
            for _ in 0..4 {
                let (mut stream, peer) = half_closed().unwrap();
                spawn(async move { stream.write_all(vec![1; MUCH]).await.0 }).detach();
                peers.push(peer);
            }
            for _ in 0..round {
                turns().await;
            }
            peers
        });
        assert_eq!(runtime.shutdown().leaked_operations(), 0);
        drop(peers);
    }
}

#[test]
fn waiting_for_room_does_not_take_the_end_for_it() {
    on_shard(|| async {
        let (mut stream, mut peer) = half_closed()?;
        let (mut sent, mut attempts) = (0, 0);
        // The system moves bytes on from one end to the other for a while.
        loop {
            match stream.try_write(&[1; 1 << 16]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut writable = pin!(stream.writable());
                    let mut is_ready = false;
                    for _ in 0..8 {
                        is_ready |= poll_fn(|cx| Poll::Ready(writable.as_mut().poll(cx)))
                            .await
                            .is_ready();
                        if is_ready {
                            break;
                        }
                        turns().await;
                    }
                    if !is_ready {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
            attempts += 1;
            assert!(
                attempts < 10_000 && sent < MUCH,
                "{sent} bytes sent in {attempts} attempts, and the peer reads nothing"
            );
        }
        let reading = blocking::run(move || {
            let mut bytes = vec![0; sent];
            peer.read_exact(&mut bytes).map(|()| peer)
        });
        stream.writable().await?;
        let _peer = reading.await.unwrap()?;
        assert_eq!(stream.try_write(b"more")?, 4);
        Ok(())
    });
}

#[test]
fn what_fills_a_unix_stream_is_awaited_as_well() {
    on_shard(|| async {
        let (stream, mut peer) = StdUnixStream::pair()?;
        peer.shutdown(Shutdown::Write)?;
        let mut stream = UnixStream::from_std(stream)?;
        let mut sent = 0;
        while let Ok(count) = stream.try_write(&[1; 1 << 12]) {
            sent += count;
        }
        {
            let mut writable = pin!(stream.writable());
            start(writable.as_mut()).await;
            turns().await;
            start(writable.as_mut()).await;
        }
        let reading = blocking::run(move || {
            let mut bytes = vec![0; sent];
            peer.read_exact(&mut bytes).map(|()| peer)
        });
        stream.writable().await?;
        let _peer = reading.await.unwrap()?;
        assert_eq!(stream.try_write(b"more")?, 4);
        Ok(())
    });
}
