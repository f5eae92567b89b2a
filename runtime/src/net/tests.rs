//! TCP on a running shard: cancellation above all.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as StdStream};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::pin::{Pin, pin};
use std::task::Poll;

use super::{TcpListener, TcpStream};
use crate::buffer::{IoBuf, IoBufMut};
use crate::{Builder, spawn};

/// Runs a test on a shard of its own.
fn on_shard<F>(test: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = io::Result<()>> + 'static,
{
    let runtime = Builder::new().shards(1).start().unwrap();
    runtime.run_on(0, test).unwrap();
}

/// A listener, and a stream whose other end is blocking and ours.
fn connected() -> io::Result<(TcpStream, StdStream)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let near = StdStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    Ok((TcpStream::from_std(near)?, far))
}

/// Two connected streams of this shard.
async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = spawn(TcpStream::connect(listener.local_addr()?));
    let (server, _) = listener.accept().await?;
    Ok((client.await.unwrap()?, server))
}

/// Polls a future once, which must not be ready.
async fn start<F: Future>(mut future: Pin<&mut F>) {
    poll_fn(|cx| {
        assert!(
            future.as_mut().poll(cx).is_pending(),
            "the operation ended at once"
        );
        Poll::Ready(())
    })
    .await;
}

/// Lets the shard take turns, so that what was started is in the kernel.
async fn turns() {
    for _ in 0..8 {
        let (mut near, far) = connected().unwrap();
        drop(far);
        assert_eq!(near.read([0; 1]).await.0.unwrap(), 0);
    }
}

fn is_open(fd: RawFd) -> bool {
    std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok()
}

#[test]
fn a_stream_carries_bytes_both_ways() {
    on_shard(|| async {
        let (mut client, mut server) = pair().await?;
        assert_eq!(client.local_addr()?, server.peer_addr()?);
        client.set_nodelay(true)?;
        assert!(client.nodelay()?);
        client.write_all("request").await.0?;
        let (result, bytes) = server.read(Vec::with_capacity(64)).await;
        assert_eq!((result?, bytes.as_slice()), (7, b"request".as_slice()));
        let (result, sent) = server.write(b"re".as_slice()).await;
        assert_eq!((result?, sent), (2, b"re".as_slice()));
        let (result, bytes) = client.read_exact([0; 2]).await;
        result?;
        assert_eq!(&bytes, b"re");
        server.shutdown(Shutdown::Write).await?;
        assert_eq!(client.read([0; 2]).await.0?, 0);
        let (result, _) = client.read_exact([0; 2]).await;
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        Ok(())
    });
}

#[test]
fn large_writes_arrive_whole_and_in_order() {
    on_shard(|| async {
        let (mut client, mut server) = pair().await?;
        let sent: Vec<u8> = (0..4_000_000_u32)
            .map(|index| index.to_le_bytes()[1])
            .collect();
        let expected = sent.clone();
        let writer = spawn(async move {
            let (one, rest) = (sent[..1_000_000].to_vec(), sent[1_000_000..].to_vec());
            client.write_all(one).await.0.unwrap();
            let pieces: Vec<Vec<u8>> = rest.chunks(1777).map(<[u8]>::to_vec).collect();
            client.write_all_vectored(pieces).await.0.unwrap();
        });
        let (result, received) = server
            .read_exact(vec![0; 4_000_000].into_boxed_slice())
            .await;
        result?;
        writer.await.unwrap();
        assert!(*received == *expected);
        Ok(())
    });
}

#[test]
fn vectored_writes_join_their_pieces() {
    on_shard(|| async {
        let (mut client, mut server) = pair().await?;
        let pieces = vec![*b"ab", *b"cd", *b"ef"];
        let (result, pieces) = client.write_vectored(pieces).await;
        assert_eq!((result?, pieces.len()), (6, 3));
        let (result, bytes) = server.read_exact([0; 6]).await;
        result?;
        assert_eq!(&bytes, b"abcdef");
        assert_eq!(client.write_vectored(vec!["", ""]).await.0?, 0);
        assert_eq!(client.write("").await.0?, 0);
        assert_eq!(server.read(Vec::new()).await.0?, 0);
        Ok(())
    });
}

/// When an operation is dropped: right after what it waits for happened, or once the shard knows of it.
#[derive(Clone, Copy)]
enum DropWhen {
    InFlight,
    Done,
}

impl DropWhen {
    const BOTH: [DropWhen; 2] = [DropWhen::InFlight, DropWhen::Done];

    async fn settle(self) {
        if let DropWhen::Done = self {
            turns().await;
        }
    }
}

#[test]
fn bytes_of_a_dropped_read_go_to_the_next_one() {
    on_shard(|| async {
        for when in DropWhen::BOTH {
            let (mut stream, mut peer) = connected()?;
            {
                let mut read = pin!(stream.read(vec![0; 64]));
                start(read.as_mut()).await;
                turns().await;
                peer.write_all(b"precious")?;
                when.settle().await;
            }
            let (result, bytes) = stream.read(Vec::with_capacity(3)).await;
            result?;
            assert_eq!(bytes, b"pre");
            peer.write_all(b" bytes")?;
            let (result, rest) = stream.read_exact([0; 11]).await;
            result?;
            assert_eq!(&rest, b"cious bytes");
        }
        Ok(())
    });
}

#[test]
fn reads_dropped_at_any_moment_lose_nothing() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        let sender = std::thread::spawn(move || {
            for byte in 0..=255_u8 {
                peer.write_all(&[byte; 40]).unwrap();
            }
        });
        let mut received = Vec::new();
        for attempt in 0.. {
            let mut read = pin!(stream.read(vec![0; 1 + attempt % 7]));
            // Some reads are dropped unstarted, some queued, some in flight, some done.
            for _ in 0..attempt % 3 {
                if let Some((result, bytes)) = poll_once(read.as_mut()).await {
                    received.extend_from_slice(&bytes[..result?]);
                    break;
                }
                crate::yield_now().await;
            }
            if received.len() == 256 * 40 {
                break;
            }
        }
        sender.join().unwrap();
        let mut expected = (0..=255_u8).map(|byte| [byte; 40]);
        assert!(
            received
                .chunks(40)
                .all(|chunk| expected.next().is_some_and(|expected| chunk == expected))
        );
        Ok(())
    });
}

/// Polls a future once; its output if it is ready.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// A listener whose accept was dropped, and the client that accept was for.
async fn dropped_accept(when: DropWhen) -> io::Result<(TcpListener, StdStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = {
        let mut accept = pin!(listener.accept());
        start(accept.as_mut()).await;
        turns().await;
        let client = StdStream::connect(listener.local_addr()?)?;
        when.settle().await;
        client
    };
    Ok((listener, client))
}

#[test]
fn a_connection_taken_by_a_dropped_accept_goes_to_the_next_one() {
    on_shard(|| async {
        for when in DropWhen::BOTH {
            let (listener, client) = dropped_accept(when).await?;
            let (_stream, peer) = listener.accept().await?;
            assert_eq!(peer, client.local_addr()?);
        }
        Ok(())
    });
}

#[test]
fn a_connection_taken_by_a_dropped_accept_closes_with_the_listener() {
    on_shard(|| async {
        for when in DropWhen::BOTH {
            let (listener, mut client) = dropped_accept(when).await?;
            drop(listener);
            turns().await;
            // Closed: the peer sees the end, or a reset.
            assert!(matches!(client.read(&mut [0; 1]), Ok(0) | Err(_)));
        }
        Ok(())
    });
}

#[test]
fn a_cancelled_accept_keeps_its_listener_open_until_it_ended() {
    on_shard(|| async {
        let (listener, _client) = dropped_accept(DropWhen::InFlight).await?;
        let fd = listener.as_fd().as_raw_fd();
        drop(listener);
        assert!(is_open(fd));
        Ok(())
    });
}

#[test]
fn two_accepts_take_turns() {
    on_shard(|| async {
        let listener = std::rc::Rc::new(TcpListener::bind("127.0.0.1:0")?);
        let address = listener.local_addr()?;
        let accepts: Vec<_> = (0..3)
            .map(|_| {
                let listener = std::rc::Rc::clone(&listener);
                spawn(async move { listener.accept().await.unwrap().1 })
            })
            .collect();
        turns().await;
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(StdStream::connect(address)?);
        }
        let mut expected: Vec<SocketAddr> = clients
            .iter()
            .map(|client| client.local_addr().unwrap())
            .collect();
        let mut found = Vec::new();
        for accept in accepts {
            found.push(accept.await.unwrap());
        }
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        Ok(())
    });
}

#[test]
fn a_dropped_stream_closes_even_with_a_read_in_flight() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        {
            let mut read = pin!(stream.read([0; 8]));
            start(read.as_mut()).await;
            turns().await;
        }
        drop(stream);
        turns().await;
        assert_eq!(peer.read(&mut [0; 1])?, 0);
        Ok(())
    });
}

#[test]
fn forgetting_a_read_in_flight_is_safe() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        let mut read = Box::pin(async move { stream.read(vec![0; 4096]).await.0 });
        start(read.as_mut()).await;
        turns().await;
        #[expect(clippy::mem_forget, reason = "that is the question")]
        std::mem::forget(read);
        peer.write_all(&[1; 4096])?;
        turns().await;
        Ok(())
    });
}

#[test]
fn a_write_after_a_dropped_write_does_not_overtake_it() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        {
            // More than the socket takes: the write stays in flight.
            let mut write = pin!(stream.write_all(vec![1; 64 << 20]));
            start(write.as_mut()).await;
            turns().await;
        }
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            peer.read_to_end(&mut received).unwrap();
            received
        });
        stream.write_all(vec![2; 100_000]).await.0?;
        drop(stream);
        let received = reader.join().unwrap();
        let ones = received.iter().take_while(|&&byte| byte == 1).count();
        assert!(ones > 0 && received[ones..] == vec![2; 100_000]);
        Ok(())
    });
}

#[test]
fn halves_work_apart_and_come_together() {
    on_shard(|| async {
        let (client, mut server) = pair().await?;
        let (mut read_half, mut write_half) = client.into_split();
        let reader = spawn(async move {
            let (result, bytes) = read_half.read_exact([0; 4]).await;
            result.map(|()| (read_half, bytes))
        });
        write_half.write_all("ping").await.0?;
        let (result, bytes) = server.read_exact([0; 4]).await;
        result?;
        server.write_all(bytes).await.0?;
        let (read_half, bytes) = reader.await.unwrap()?;
        assert_eq!(&bytes, b"ping");

        let (other, _server) = pair().await?;
        let (_other_read, other_write) = other.into_split();
        let error = read_half.reunite(other_write).unwrap_err();
        let mut client = error.read_half.reunite(write_half).unwrap();
        client.write_all("still open").await.0?;
        assert_eq!(server.read([0; 16]).await.0?, 10);
        Ok(())
    });
}

#[test]
fn dropping_the_write_half_ends_the_stream_for_the_peer() {
    on_shard(|| async {
        let (client, mut server) = pair().await?;
        let (mut read_half, write_half) = client.into_split();
        drop(write_half);
        assert_eq!(server.read([0; 1]).await.0?, 0);
        server.write_all("answer").await.0?;
        assert_eq!(read_half.read([0; 16]).await.0?, 6);
        Ok(())
    });
}

#[test]
fn errors_come_from_the_kernel() {
    on_shard(|| async {
        let vacant = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let error = TcpStream::connect(vacant).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let listener = TcpListener::bind("[::1]:0")?;
        let error = TcpListener::bind(listener.local_addr()?).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let (mut client, server) = pair().await?;
        drop(server);
        // The first write may still be taken; no signal kills the process.
        let mut result = Ok(());
        for _ in 0..10 {
            result = client.write_all(vec![0; 1 << 16]).await.0;
        }
        assert!(result.is_err());
        Ok(())
    });
}

#[test]
fn listeners_share_a_port_when_all_of_them_ask_for_it() {
    on_shard(|| async {
        let first = TcpListener::bind_reuse_port("127.0.0.1:0")?;
        let second = TcpListener::bind_reuse_port(first.local_addr()?)?;
        assert_eq!(first.local_addr()?, second.local_addr()?);
        assert!(TcpListener::bind(first.local_addr()?).is_err());
        Ok(())
    });
}

#[test]
fn a_stream_moves_through_the_standard_library_unless_bytes_would_be_lost() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        {
            let mut read = pin!(stream.read([0; 8]));
            start(read.as_mut()).await;
            turns().await;
            peer.write_all(b"x")?;
        }
        let mut stream = stream.into_std().unwrap_err();
        turns().await;
        assert_eq!(stream.read([0; 8]).await.0?, 1);
        let mut stream = TcpStream::from_std(stream.into_std().unwrap())?;
        peer.write_all(b"yz")?;
        assert_eq!(stream.read([0; 8]).await.0?, 2);
        Ok(())
    });
}

#[test]
fn without_a_shard_the_buffer_comes_back_with_an_error() {
    let (mut stream, _peer) = connected().unwrap();
    let mut read = pin!(stream.read(b"mine".to_vec()));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let Poll::Ready((result, buffer)) = read.as_mut().poll(&mut cx) else {
        panic!("refused at once")
    };
    assert!(
        result
            .unwrap_err()
            .to_string()
            .contains("no shard on this thread")
    );
    assert_eq!(buffer, b"mine");
}

/// A buffer whose destructor opens, uses and drops sockets.
struct Busy(Vec<u8>);

#[expect(unsafe_code, reason = "implements the contract of buffers")]
// SAFETY: forwards to a vector.
unsafe impl IoBuf for Busy {
    fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

#[expect(unsafe_code, reason = "implements the contract of buffers")]
// SAFETY: forwards to a vector.
unsafe impl IoBufMut for Busy {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }

    unsafe fn set_len(&mut self, _len: usize) {}
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Ok((mut stream, _peer)) = connected() else {
            return;
        };
        let mut read = pin!(stream.read([0; 8]));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(
            read.as_mut().poll(&mut cx).is_pending(),
            "the driver is free when buffers are dropped"
        );
    }
}

#[test]
fn destructors_of_buffers_may_use_the_driver() {
    on_shard(|| async {
        for in_flight in [false, true] {
            let (mut stream, peer) = connected()?;
            {
                let mut read = pin!(stream.read(Busy(vec![0; 8])));
                start(read.as_mut()).await;
                if in_flight {
                    turns().await;
                }
            }
            turns().await;
            drop(peer);
        }
        Ok(())
    });
}
