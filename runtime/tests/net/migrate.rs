//! Connections that move between shards, and a listener that serves all of them, through the public API.

use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;

use greenroom_runtime::net::{
    DetachedStream, Distributor, MigrateError, TcpListener, TcpStream, UnixStream, migrate,
};
use greenroom_runtime::{Builder, Handle, Runtime, ShardId, current_shard, spawn};

use crate::support::{on_shard, start, turns};

fn runtime(shards: usize) -> Runtime {
    Builder::new().shards(shards).start().unwrap()
}

/// A connection, and its other end, which is blocking and ours.
fn connected() -> (TcpStream, StdStream) {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let near = StdStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    (TcpStream::from_std(near).unwrap(), far)
}

/// Whether the other end of a connection is closed, without a byte more.
fn is_closed(mut peer: StdStream) -> bool {
    matches!(peer.read(&mut [0; 8]), Ok(0))
}

fn is_send<T: Send>(_: &T) {}

#[test]
fn no_byte_is_lost_or_doubled_on_the_way() {
    let runtime = runtime(2);
    let total = runtime.run_on(0, || async {
        let (mut stream, mut peer) = connected();
        let sent: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let expected = sent.clone();
        let writer = std::thread::spawn(move || {
            for chunk in sent.chunks(997) {
                peer.write_all(chunk).unwrap();
            }
        });
        let mut received = Vec::new();
        for round in 0..40_u16 {
            // Every way to the bytes is left in the middle: a dropped read, one that repeats itself, and a plain one.
            if round % 2 == 0 {
                received.extend_from_slice(&stream.recv().await.unwrap().unwrap());
            }
            let polled = {
                let mut read = pin!(stream.read(Vec::with_capacity(64)));
                poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx))).await
            };
            if let Poll::Ready((result, bytes)) = polled {
                result.unwrap();
                received.extend(bytes);
            }
            received = there_and_back(&mut stream, received, round).await;
        }
        loop {
            let (result, bytes) = stream.read(Vec::with_capacity(4096)).await;
            if result.unwrap() == 0 {
                break;
            }
            received.extend(bytes);
        }
        writer.join().unwrap();
        assert!(
            received == expected,
            "{} of {} bytes",
            received.len(),
            expected.len()
        );
        received.len()
    });
    assert_eq!(total, 200_000);
}

/// Reads once on the other shard.
async fn there_and_back(stream: &mut TcpStream, mut received: Vec<u8>, round: u16) -> Vec<u8> {
    let spare = connected().0;
    let detached = std::mem::replace(stream, spare).detach().await.unwrap();
    is_send(&detached);
    let there = Handle::current().unwrap().spawn_on(1, move || async move {
        let mut stream: TcpStream = detached.attach();
        assert_eq!(current_shard(), Some(1.into()));
        let (result, bytes) = stream
            .read(Vec::with_capacity(usize::from(round) + 1))
            .await;
        result.unwrap();
        received.extend(bytes);
        (stream.detach().await.unwrap(), received)
    });
    let (detached, received) = there.await.unwrap();
    *stream = detached.attach();
    received
}

#[test]
fn what_a_dropped_read_took_is_read_first_on_the_other_shard() {
    let runtime = runtime(2);
    runtime.run_on(0, || async {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        {
            let mut read = pin!(other.read([0; 16]));
            start(read.as_mut()).await;
            turns().await;
            one.write_all("first ").await.0.unwrap();
            turns().await;
        }
        one.write_all("second").await.0.unwrap();
        migrate(other, 1, |mut other| async move {
            let (result, bytes) = other.read_exact([0; 12]).await;
            result.unwrap();
            other.write_all(bytes).await.0.unwrap();
        })
        .await
        .unwrap();
        assert_eq!(one.read_exact([0; 12]).await.1, *b"first second");
    });
}

#[test]
fn a_connection_that_ended_says_so_on_the_other_shard_too() {
    let runtime = runtime(2);
    runtime.run_on(0, || async {
        let (mut stream, mut peer) = connected();
        peer.write_all(b"last words").unwrap();
        drop(peer);
        assert_eq!(&*stream.recv().await.unwrap().unwrap(), b"last words");
        turns().await;
        let detached = stream.detach().await.unwrap();
        let there = Handle::current().unwrap().spawn_on(1, move || async move {
            let mut stream = detached.attach();
            (
                stream.recv().await.unwrap().is_none(),
                stream.read([0; 1]).await.0.unwrap(),
            )
        });
        assert_eq!(there.await.unwrap(), (true, 0));
    });
}

#[test]
fn a_connection_comes_back_from_a_shard_that_does_not_exist() {
    on_shard(|| async {
        let (mut one, other) = UnixStream::pair()?;
        let error = migrate(other, 7, |_| async {}).await.unwrap_err();
        assert!(error.to_string().contains("shard 7"), "{error}");
        let MigrateError::ShardGone(gone) = error else {
            panic!("the stream could let go")
        };
        assert_eq!(gone.shard(), ShardId::from(7));
        let mut other = gone.into_stream().attach();
        other.write_all("still here").await.0?;
        assert_eq!(one.read_exact([0; 10]).await.1, *b"still here");
        Ok(())
    });
}

#[test]
fn a_connection_comes_back_from_a_runtime_that_is_gone() {
    let gone = runtime(1);
    let handle = gone.handle().clone();
    gone.shutdown();
    let runtime = runtime(1);
    let (mut peer, detached): (StdStream, DetachedStream<TcpStream>) =
        runtime.run_on(0, || async {
            let (stream, peer) = connected();
            (peer, stream.detach().await.unwrap())
        });
    let error = runtime
        .block_on(detached.hand_over(&handle, 0, |_| async {}))
        .unwrap_err();
    runtime.run_on(0, move || async move {
        error
            .into_stream()
            .attach()
            .write_all("back")
            .await
            .0
            .unwrap();
    });
    let mut bytes = [0; 4];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"back");
}

#[test]
fn a_connection_that_nobody_keeps_is_closed() {
    let runtime = runtime(1);
    let (peer, detached) = runtime.run_on(0, || async {
        let (stream, peer) = connected();
        (peer, stream.detach().await.unwrap())
    });
    runtime.shutdown();
    drop(detached);
    assert!(is_closed(peer));
}

/// Serves with the number of the shard, and keeps connections open until they are closed by the client.
async fn tell_shard(mut stream: TcpStream, _peer: SocketAddr) {
    let shard = u8::try_from(current_shard().unwrap().index()).unwrap();
    stream.write_all([shard]).await.0.unwrap();
    while stream.recv().await.is_ok_and(|bytes| bytes.is_some()) {}
}

/// Runs a distributor on shard 0, and tells its address.
fn serve(runtime: &Runtime, policy: fn(Distributor) -> Distributor) -> SocketAddr {
    let (address, known) = mpsc::channel();
    drop(runtime.handle().spawn_on(0, move || async move {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        address.send(listener.local_addr().unwrap()).unwrap();
        policy(Distributor::new(listener)).run(tell_shard).await;
    }));
    known.recv().unwrap()
}

/// Connects, and waits for the number of the shard that serves.
fn connect(address: SocketAddr) -> io::Result<(u8, StdStream)> {
    let mut stream = StdStream::connect(address)?;
    let mut shard = [0];
    stream.read_exact(&mut shard)?;
    Ok((shard[0], stream))
}

#[test]
fn shards_get_connections_in_turn() {
    let runtime = runtime(3);
    let address = serve(&runtime, |distributor| distributor);
    let shards: Vec<u8> = (0..9).map(|_| connect(address).unwrap().0).collect();
    assert_eq!(shards, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn the_shard_with_the_fewest_connections_gets_the_next() {
    let runtime = runtime(2);
    let address = serve(&runtime, Distributor::least_connections);
    let (_, held) = connect(address).unwrap();
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(connect(address).unwrap());
    }
    let shards: Vec<u8> = others.iter().map(|(shard, _)| *shard).collect();
    assert_eq!(
        shards.iter().filter(|&&shard| shard == 0).count(),
        2,
        "{shards:?}"
    );
    drop(held);
}

#[test]
fn a_closure_chooses_by_peer_and_a_missing_shard_is_replaced() {
    let runtime = runtime(2);
    let to_one = serve(&runtime, |distributor| distributor.by_peer(|_| 1.into()));
    let to_none = serve(&runtime, |distributor| distributor.by_peer(|_| 9.into()));
    for _ in 0..3 {
        assert_eq!(connect(to_one).unwrap().0, 1);
        assert!(connect(to_none).unwrap().0 < 2);
    }
}

#[test]
fn a_dropped_distributor_closes_its_listener_and_serves_on() {
    let runtime = runtime(2);
    runtime.run_on(0, || async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(Distributor::new(listener).run(tell_shard));
        let mut clients = Vec::new();
        for expected in [0, 1] {
            let mut client = TcpStream::connect(address).await.unwrap();
            assert_eq!(client.read_exact([9]).await.1, [expected]);
            clients.push(client);
        }
        server.abort();
        assert!(server.await.is_err());
        turns().await;
        let error = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        for client in &mut clients {
            client.write_all("x").await.0.unwrap();
        }
    });
}
