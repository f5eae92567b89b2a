//! Accepting TCP connections, through the public interface.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::os::fd::{AsFd, AsRawFd};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use greenroom_runtime::net::{Keepalive, TcpListener, TcpSocket, TcpStream};
use greenroom_runtime::{Builder, ShardCounts, spawn, yield_now};

fn on_shard<F>(test: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = io::Result<()>> + 'static,
{
    let runtime = Builder::new().shards(1).start().unwrap();
    runtime.run_on(0, test).unwrap();
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

fn live_operations() -> usize {
    ShardCounts::current().unwrap().live_operations
}

/// Lets the shard take turns until `is_done`, within reason.
async fn turns_until(mut is_done: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if is_done() {
            return;
        }
        yield_now().await;
    }
    panic!("it did not come to that");
}

#[test]
fn connections_come_in_order_and_with_their_addresses() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let mut clients = Vec::new();
        for round in 0..10 {
            // Some wait in the backlog, some are taken while nobody accepts, some are waited for.
            if round % 3 == 1 {
                assert!(poll_once(pin!(listener.accept())).await.is_none());
            }
            for _ in 0..3 {
                clients.push(StdStream::connect(address)?);
            }
            for client in &clients[clients.len() - 3..] {
                let (stream, peer) = listener.accept().await?;
                assert_eq!(peer, client.local_addr()?);
                assert_eq!(stream.peer_addr()?, peer);
            }
        }
        Ok(())
    });
}

#[test]
fn one_request_to_the_kernel_serves_many_accepts() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        assert_eq!(live_operations(), 1);
        let address = listener.local_addr()?;
        for _ in 0..20 {
            let _client = StdStream::connect(address)?;
            listener.accept().await?;
            assert_eq!(live_operations(), 2, "the doorbell's and the listener's");
        }
        Ok(())
    });
}

#[test]
fn more_connections_than_are_kept_wait_in_the_backlog() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        assert!(poll_once(pin!(listener.accept())).await.is_none());
        let clients: Vec<StdStream> = (0..300)
            .map(|_| StdStream::connect(address))
            .collect::<io::Result<_>>()?;
        // The kernel is told to stop, and stops.
        turns_until(|| live_operations() == 1).await;
        for client in &clients {
            assert_eq!(listener.accept().await?.1, client.local_addr()?);
        }
        Ok(())
    });
}

#[test]
fn a_dropped_listener_closes_what_nobody_accepted() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        assert!(poll_once(pin!(listener.accept())).await.is_none());
        let mut clients: Vec<StdStream> = (0..10)
            .map(|_| StdStream::connect(address))
            .collect::<io::Result<_>>()?;
        drop(listener);
        turns_until(|| live_operations() == 1).await;
        for client in &mut clients {
            // Closed, or reset.
            assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
        }
        assert!(StdStream::connect(address).is_err());
        // The port is free again.
        TcpListener::bind(address).map(drop)
    });
}

#[test]
fn a_listener_stays_open_until_the_kernel_lets_go_of_it() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        assert!(poll_once(pin!(listener.accept())).await.is_none());
        yield_now().await;
        let fd = listener.as_fd().as_raw_fd();
        drop(listener);
        let is_open = || std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok();
        assert!(is_open(), "its number must not be given out again");
        turns_until(|| live_operations() == 1).await;
        Ok(())
    });
}

#[test]
fn each_connection_goes_to_one_of_several_tasks() {
    on_shard(|| async {
        let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
        let address = listener.local_addr()?;
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let listener = Rc::clone(&listener);
                spawn(async move { listener.accept().await.unwrap().1 })
            })
            .collect();
        let clients: Vec<StdStream> = (0..20)
            .map(|_| StdStream::connect(address))
            .collect::<io::Result<_>>()?;
        let mut expected: Vec<SocketAddr> = Vec::new();
        for client in &clients {
            expected.push(client.local_addr()?);
        }
        let mut found = Vec::new();
        for task in tasks {
            found.push(task.await.unwrap());
        }
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        Ok(())
    });
}

#[test]
fn a_task_that_stops_accepting_leaves_the_rest_to_others() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let mut expected = Vec::new();
        let mut found = Vec::new();
        let mut clients = Vec::new();
        for round in 0..100 {
            let client = StdStream::connect(address)?;
            expected.push(client.local_addr()?);
            clients.push(client);
            // Dropped at any moment.
            let mut accept = pin!(listener.accept());
            for _ in 0..round % 4 {
                if let Some(accepted) = poll_once(accept.as_mut()).await {
                    found.push(accepted?.1);
                    break;
                }
                yield_now().await;
            }
        }
        while found.len() < expected.len() {
            found.push(listener.accept().await?.1);
        }
        assert_eq!(found, expected);
        Ok(())
    });
}

#[test]
fn a_connection_that_was_reset_meanwhile_is_passed_over() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let gone = StdStream::connect(address)?;
        socket2::SockRef::from(&gone).set_linger(Some(Duration::ZERO))?;
        drop(gone);
        let client = StdStream::connect(address)?;
        assert_eq!(listener.accept().await?.1, client.local_addr()?);
        Ok(())
    });
}

#[test]
fn a_socket_is_set_up_before_it_listens_or_connects() {
    on_shard(|| async {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.set_nodelay(true)?;
        socket.set_keepalive(Keepalive::default())?;
        socket.set_send_buffer_size(1 << 15)?;
        socket.bind("127.0.0.1:0")?;
        let address = socket.local_addr()?;
        let listener = socket.listen(8)?;
        let second = TcpListener::bind_reuse_port(address)?;
        drop(second);

        let client = TcpSocket::new_v4()?;
        client.bind("127.0.0.3:0")?;
        let client = spawn(async move { client.connect(address).await });
        let (stream, peer) = listener.accept().await?;
        assert_eq!(peer.ip().to_string(), "127.0.0.3");
        assert!(stream.nodelay()?);
        assert_eq!(stream.keepalive()?, Some(Keepalive::default()));
        assert!(stream.send_buffer_size()? >= 1 << 15);
        let client = client.await.unwrap()?;
        assert!(!client.nodelay()?);

        assert!(TcpSocket::new_v6()?.bind(address).is_err());
        let error = TcpSocket::new_v4()?.connect("nowhere:1").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        Ok(())
    });
}

#[test]
fn options_are_what_they_were_set_to() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let client = StdStream::connect(listener.local_addr()?)?;
        let (stream, _) = listener.accept().await?;
        assert_eq!(stream.keepalive()?, None);
        let keepalive = Keepalive {
            idle: Duration::from_secs(7),
            interval: Duration::from_secs(3),
            retries: 5,
        };
        stream.set_keepalive(Some(keepalive))?;
        assert_eq!(stream.keepalive()?, Some(keepalive));
        stream.set_keepalive(None)?;
        assert_eq!(stream.keepalive()?, None);
        let too_short = Keepalive {
            idle: Duration::from_millis(1),
            ..keepalive
        };
        let error = stream.set_keepalive(Some(too_short)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        stream.set_ttl(17)?;
        assert_eq!(stream.ttl()?, 17);
        assert!(stream.set_ttl(256).is_err());
        stream.set_recv_buffer_size(1 << 16)?;
        assert!(stream.recv_buffer_size()? >= 1 << 16);
        assert!(stream.take_error()?.is_none());

        stream.reset_on_drop()?;
        drop(stream);
        let error = (&client).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        Ok(())
    });
}

#[test]
fn what_is_tried_does_not_wait_and_keeps_the_order() {
    on_shard(|| async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let near = StdStream::connect(listener.local_addr()?)?;
        let (mut peer, _) = listener.accept()?;
        let mut stream = TcpStream::from_std(near)?;
        let mut buffer = [0; 8];
        let kind = |result: io::Result<usize>| result.unwrap_err().kind();
        assert_eq!(
            kind(stream.try_read(&mut buffer)),
            io::ErrorKind::WouldBlock
        );
        peer.write_all(b"abc")?;
        stream.readable().await?;
        assert_eq!(stream.try_read(&mut buffer[..2])?, 2);
        assert_eq!(stream.try_read(&mut buffer)?, 1);
        {
            let mut read = pin!(stream.read([0; 1]));
            assert!(poll_once(read.as_mut()).await.is_none());
            turns_until(|| live_operations() == 2).await;
            yield_now().await;
        }
        peer.write_all(b"d")?;
        // What the dropped read takes comes first: nothing overtakes it.
        let refused = kind(stream.try_read(&mut buffer));
        assert_eq!(refused, io::ErrorKind::WouldBlock);
        assert_eq!(stream.read([0; 8]).await.0?, 1);
        drop(peer);
        while stream.read([0; 1]).await.0? > 0 {}
        assert_eq!(
            stream.try_read(&mut buffer)?,
            0,
            "the end is no reason to wait"
        );

        let near = StdStream::connect(listener.local_addr()?)?;
        let (mut peer, _) = listener.accept()?;
        let mut stream = TcpStream::from_std(near)?;
        let mut written = 0;
        loop {
            match stream.try_write(&[7; 1 << 16]) {
                Ok(count) => written += count,
                Err(error) => break assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            peer.read_to_end(&mut bytes).unwrap();
            bytes
        });
        stream.writable().await?;
        written += stream.try_write(&[7; 10])?;
        drop(stream);
        assert!(reader.join().unwrap() == vec![7; written]);
        Ok(())
    });
}

#[test]
fn a_settled_stream_can_be_given_away() {
    on_shard(|| async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let near = StdStream::connect(listener.local_addr()?)?;
        let (mut peer, _) = listener.accept()?;
        let mut stream = TcpStream::from_std(near)?;
        assert!(poll_once(pin!(stream.recv())).await.is_none());
        let mut stream = stream.into_std().expect_err("a receive is running");
        yield_now().await;
        peer.write_all(b"left")?;
        stream.settle().await;
        assert_eq!(live_operations(), 1);
        let mut buffer = [0; 4];
        let mut stream = match stream.into_std() {
            // Nothing was received: the bytes are in the socket.
            Ok(stream) => stream,
            Err(mut stream) => {
                assert_eq!(stream.try_read(&mut buffer)?, 4);
                peer.write_all(&buffer)?;
                stream.into_std().expect("nothing is left")
            }
        };
        stream.read_exact(&mut buffer)?;
        assert_eq!(&buffer, b"left");
        Ok(())
    });
}

#[test]
fn a_large_write_without_copying_arrives_and_the_buffer_returns() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let client = spawn(TcpStream::connect(listener.local_addr()?));
        let (mut server, _) = listener.accept().await?;
        let mut client = client.await.unwrap()?;
        let reader = spawn(async move {
            let mut all = Vec::new();
            while let Some(bytes) = server.recv().await.unwrap() {
                all.extend_from_slice(&bytes);
            }
            all
        });
        let mut expected = Vec::new();
        let mut returning = Vec::new();
        for round in 0..20_u8 {
            let (result, back) = client.write_zero_copy(vec![round; 50_000]).await;
            expected.extend(vec![round; result?]);
            // The next write does not wait for the buffer of this one; some are never asked for.
            if round % 3 > 0 {
                returning.push((round, back));
            }
            client.write_all([round; 3]).await.0?;
            expected.extend([round; 3]);
        }
        for (round, back) in returning {
            assert_eq!(back.await, vec![round; 50_000]);
        }
        let (result, back) = client.write_zero_copy("").await;
        assert_eq!(result?, 0);
        assert!(!back.is_in_use());
        drop(client);
        assert!(reader.await.unwrap() == expected);
        Ok(())
    });
}
