//! Unix streams, their listeners, and the descriptors they carry, through the public API.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream};
use std::pin::pin;

use greenroom_runtime::net::{
    DescriptorsLost, UnixDatagram, UnixListener, UnixSeqpacket, UnixSeqpacketListener,
    UnixSocketError, UnixStream,
};
use greenroom_runtime::spawn;

use crate::support::{DropWhen, is_orphaned, on_shard, pipe, scratch_path, start, turns};

/// A stream, and its other end, which is blocking and ours.
fn connected() -> io::Result<(UnixStream, StdStream)> {
    let (near, far) = StdStream::pair()?;
    Ok((UnixStream::from_std(near)?, far))
}

#[test]
fn a_connection_is_made_by_path_and_by_name() {
    on_shard(|| async {
        let path = scratch_path("stream");
        let name = SocketAddr::from_abstract_name(path.as_os_str().as_encoded_bytes())?;
        let by_path = UnixListener::bind(&path)?;
        let by_name = UnixListener::bind(&name)?;
        assert_eq!(by_path.local_addr()?.as_pathname(), Some(path.as_path()));
        let clients = [
            spawn(UnixStream::connect(path.clone())),
            spawn(UnixStream::connect(name)),
        ];
        for (listener, client) in [by_path, by_name].iter().zip(clients) {
            let (mut server, peer) = listener.accept().await?;
            assert!(peer.is_unnamed());
            let mut client = client.await.unwrap()?;
            assert_eq!(client.peer_cred()?.pid(), Some(std::process::id()));
            client.write_all("question").await.0?;
            let (result, bytes) = server.read(Vec::with_capacity(64)).await;
            assert_eq!((result?, bytes.as_slice()), (8, b"question".as_slice()));
            server.write_all_vectored(vec!["ans", "wer"]).await.0?;
            assert_eq!(client.read_exact([0; 6]).await.1, *b"answer");
            server.shutdown(Shutdown::Write).await?;
            assert!(client.recv().await?.is_none());
        }
        Ok(())
    });
}

#[test]
fn what_cannot_be_bound_or_connected_to_is_named() {
    on_shard(|| async {
        let check = |error: io::Error, kind: ErrorKind, says: &str| {
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().starts_with(says), "{error}");
            let details = UnixSocketError::of(&error).expect("it is about an address");
            let number = details.raw_os_error().expect("the system refused it");
            assert_eq!(io::Error::from_raw_os_error(number).kind(), kind);
        };
        let path = scratch_path("named");
        let (missing, shown) = (ErrorKind::NotFound, path.display());
        let says = format!("cannot connect to `{shown}`: No such file");
        check(
            UnixStream::connect(&path).await.unwrap_err(),
            missing,
            &says,
        );
        let packets = UnixSeqpacket::connect(&path).await;
        check(packets.unwrap_err(), missing, &says);
        let datagrams = UnixDatagram::unbound()?;
        check(datagrams.connect(&path).unwrap_err(), missing, &says);

        let _taken = UnixListener::bind(&path)?;
        let taken = ErrorKind::AddrInUse;
        let says = format!("cannot bind `{shown}`: Address already in use");
        for error in [
            UnixListener::bind(&path).unwrap_err(),
            UnixSeqpacketListener::bind(&path).unwrap_err(),
            UnixDatagram::bind(&path).unwrap_err(),
        ] {
            assert!(error.to_string().ends_with("remove the file first"));
            check(error, taken, &says);
        }
        std::fs::remove_file(&path)?;

        let name = SocketAddr::from_abstract_name(path.as_os_str().as_encoded_bytes())?;
        let error = UnixStream::connect(name).await.unwrap_err();
        let says = format!("cannot connect to the abstract name `{shown}`: Connection refused");
        check(error, ErrorKind::ConnectionRefused, &says);
        Ok(())
    });
}

#[test]
fn what_cannot_be_connected_to_is_told() {
    on_shard(|| async {
        let path = scratch_path("refused");
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        drop(UnixListener::bind(&path)?);
        assert!(path.exists(), "the file stays");
        assert_eq!(
            UnixListener::bind(&path).unwrap_err().kind(),
            ErrorKind::AddrInUse
        );
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path)?;
        let error = UnixStream::connect("x".repeat(108)).await.unwrap_err();
        assert!(error.to_string().contains("108 bytes"), "{error}");
        Ok(())
    });
}

#[test]
fn a_connect_waits_while_the_backlog_is_full() {
    on_shard(|| async {
        let path = scratch_path("backlog");
        let listener = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
        listener.bind(&socket2::SockAddr::unix(&path)?)?;
        listener.listen(0)?;
        let listener = StdListener::from(OwnedFd::from(listener));
        let first = UnixStream::connect(&path).await?;
        let waiting = spawn(UnixStream::connect(path.clone()));
        turns().await;
        assert!(!waiting.is_finished());
        drop(listener.accept()?);
        let second = waiting.await.unwrap()?;
        drop((first, second, listener.accept()?));
        std::fs::remove_file(&path)
    });
}

#[test]
fn bytes_of_a_dropped_read_go_to_the_next_one() {
    on_shard(|| async {
        for when in DropWhen::BOTH {
            let (mut stream, mut peer) = connected()?;
            when.drop(stream.read([0; 16]), async || {
                peer.write_all(b"kept").unwrap();
            })
            .await;
            let (result, bytes) = stream.read([0; 3]).await;
            assert_eq!((result?, &bytes), (3, b"kep"), "{when:?}");
            peer.write_all(b"!")?;
            assert_eq!(stream.read_exact([0; 2]).await.1, *b"t!");
        }
        Ok(())
    });
}

#[test]
fn halves_work_side_by_side_and_come_together_again() {
    on_shard(|| async {
        let (mut one, other) = UnixStream::pair()?;
        let (mut read_half, mut write_half) = other.into_split();
        let reader = spawn(async move {
            let (result, bytes) = read_half.read_exact([0; 4]).await;
            result.map(|()| (read_half, bytes))
        });
        write_half.write_all("from there").await.0?;
        assert_eq!(one.read_exact([0; 10]).await.1, *b"from there");
        one.write_all("back").await.0?;
        let (read_half, bytes) = reader.await.unwrap()?;
        assert_eq!(&bytes, b"back");

        let (_, stranger) = UnixStream::pair()?.0.into_split();
        let error = read_half.reunite(stranger).unwrap_err();
        let mut other = error.read_half.reunite(write_half).unwrap();
        other.write_all("whole").await.0?;
        assert_eq!(one.read_exact([0; 5]).await.1, *b"whole");
        drop(other.into_split().1);
        assert_eq!(one.read([0; 1]).await.0?, 0, "the write half is gone");
        Ok(())
    });
}

#[test]
fn descriptors_come_with_the_bytes_they_were_sent_with() {
    on_shard(|| async {
        let (mut one, mut other) = UnixStream::pair()?;
        one.write_all("before ").await.0?;
        let (reader, writer) = pipe()?;
        let (result, (_, sent)) = one.send_with_fds("with", vec![reader]).await;
        assert_eq!((result?, sent.len()), (4, 1));
        drop(sent);
        one.write_all(" after").await.0?;

        let mut received = Vec::new();
        let mut all = Vec::new();
        while received.len() < 17 {
            let (result, bytes) = other.recv_with_fds(Vec::with_capacity(64), 8).await;
            let (_, fds) = result?;
            received.extend(bytes);
            if !fds.is_empty() {
                assert!(received.ends_with(b"with"), "nothing behind them is joined");
                all.extend(fds);
            }
        }
        assert_eq!(received, b"before with after");
        assert!(!is_orphaned(&writer));
        let mut byte = [0];
        std::fs::File::from(all.pop().unwrap()).read_exact(&mut byte)?;
        assert!(all.is_empty() && is_orphaned(&writer));
        Ok(())
    });
}

#[test]
fn descriptors_are_closed_by_whatever_else_reads_their_bytes() {
    on_shard(|| async {
        for is_kept in [false, true] {
            let (mut one, mut other) = UnixStream::pair()?;
            let (reader, writer) = pipe()?;
            let send = async || {
                one.send_with_fds("abc", vec![reader]).await.0.unwrap();
            };
            if is_kept {
                DropWhen::Done
                    .drop(other.recv_with_fds([0; 8], 1), send)
                    .await;
            } else {
                send().await;
            }
            assert!(!is_orphaned(&writer));
            assert_eq!(other.read([0; 2]).await.0?, 2);
            assert!(is_orphaned(&writer), "kept: {is_kept}");
            let (result, bytes) = other.recv_with_fds([0; 8], 1).await;
            let (count, fds) = result?;
            assert_eq!((&bytes[..count], fds.len()), (b"c".as_slice(), 0));
        }
        Ok(())
    });
}

#[test]
fn descriptors_of_a_dropped_receive_go_to_the_next_one() {
    on_shard(|| async {
        for when in DropWhen::BOTH {
            let (mut one, mut other) = UnixStream::pair()?;
            let (reader, writer) = pipe()?;
            let send = async || {
                one.send_with_fds("kept", vec![reader]).await.0.unwrap();
            };
            when.drop(other.recv_with_fds([0; 8], 1), send).await;
            let (result, bytes) = other.recv_with_fds([0; 3], 1).await;
            let (count, fds) = result?;
            assert_eq!(
                (&bytes[..count], fds.len()),
                (b"kep".as_slice(), 1),
                "{when:?}"
            );
            assert!(!is_orphaned(&writer));
            drop(fds);
            assert!(is_orphaned(&writer));
            assert_eq!(other.read([0; 8]).await.0?, 1);
        }
        Ok(())
    });
}

#[test]
fn more_descriptors_than_expected_are_closed_and_reported() {
    on_shard(|| async {
        let (mut one, mut other) = UnixStream::pair()?;
        let (pipes, writers): (Vec<_>, Vec<_>) = (0..4)
            .map(|_| pipe().unwrap())
            .collect::<Vec<_>>()
            .into_iter()
            .unzip();
        drop(one.send_with_fds("four", pipes).await);
        let (result, bytes) = other.recv_with_fds([0; 8], 1).await;
        let error = result.unwrap_err();
        let lost: &DescriptorsLost = error.get_ref().unwrap().downcast_ref().unwrap();
        assert_eq!(&bytes[..lost.len()], b"four");
        assert!(writers.iter().all(is_orphaned));
        Ok(())
    });
}

#[test]
fn what_cannot_be_sent_is_refused_and_comes_back() {
    on_shard(|| async {
        let (mut one, other) = UnixStream::pair()?;
        let (reader, _writer) = pipe()?;
        let (result, (_, fds)) = one.send_with_fds("", vec![reader]).await;
        assert!(
            result
                .unwrap_err()
                .to_string()
                .contains("at least one byte")
        );
        assert_eq!(fds.len(), 1);
        assert_eq!(one.send_with_fds("", Vec::new()).await.0?, 0);
        assert_eq!(
            one.recv_with_fds(Vec::new(), 1).await.0.unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        drop(other);
        let (result, (_, fds)) = one.send_with_fds("x", fds).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(fds.len(), 1);
        let (result, _) = one.recv_with_fds([0; 1], 1).await;
        assert_eq!(result?.0, 0, "the end of the stream");
        Ok(())
    });
}

#[test]
fn a_receive_with_descriptors_takes_over_from_one_that_repeats_itself() {
    on_shard(|| async {
        let (mut stream, mut peer) = connected()?;
        peer.write_all(b"first")?;
        assert_eq!(&*stream.recv().await?.unwrap(), b"first");
        peer.write_all(b"second")?;
        turns().await;
        let mut seen = Vec::new();
        while seen.len() < 6 {
            let (result, bytes) = stream.recv_with_fds([0; 4], 1).await;
            seen.extend_from_slice(&bytes[..result?.0]);
        }
        assert_eq!(seen, b"second");
        {
            let mut receive = pin!(stream.recv_with_fds([0; 4], 1));
            start(receive.as_mut()).await;
            peer.write_all(b"3rd")?;
            assert_eq!(receive.await.0?.0, 3);
        }
        peer.write_all(b"4th")?;
        assert_eq!(&*stream.recv().await?.unwrap(), b"4th");
        Ok(())
    });
}
