//! Unix connections that carry packets, through the public API.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::pin::pin;

use greenroom_runtime::net::{UnixSeqpacket, UnixSeqpacketListener, UnixStream};
use greenroom_runtime::spawn;

use crate::support::{DropWhen, is_orphaned, on_shard, pipe, scratch_path, start};

#[test]
fn packets_arrive_whole_and_in_order_until_the_end() {
    on_shard(|| async {
        let path = scratch_path("packets");
        let listener = UnixSeqpacketListener::bind(&path)?;
        assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
        let client = spawn(UnixSeqpacket::connect(path.clone()));
        let server = listener.accept().await?;
        let client = client.await.unwrap()?;
        assert_eq!(server.peer_cred()?.pid(), Some(std::process::id()));

        client.send("one").await.0?;
        client.send_vectored(vec!["tw", "o!"]).await.0?;
        client.try_send("three").0?;
        let (result, packet) = server.recv(Vec::with_capacity(16)).await;
        assert_eq!(
            (result?.unwrap().len, packet.as_slice()),
            (3, b"one".as_slice())
        );
        let (result, packet) = server.recv_vectored(vec![[0; 1], [0; 1]]).await;
        let datagram = result?.unwrap();
        assert_eq!(
            (datagram.len, datagram.full_len, packet),
            (2, 4, vec![*b"t", *b"w"])
        );
        assert!(!server.try_recv([0; 8]).0?.unwrap().is_truncated());
        assert_eq!(
            server.try_recv([0; 8]).0.unwrap_err().kind(),
            ErrorKind::WouldBlock
        );

        client.shutdown(Shutdown::Write).await?;
        assert!(server.recv([0; 8]).await.0?.is_none());
        assert!(server.recv_with_fds([0; 8], 1).await.0?.is_none());
        server.send("still heard").await.0?;
        assert_eq!(client.recv([0; 16]).await.0?.unwrap().len, 11);
        drop(server);
        assert_eq!(
            client.send("nobody").await.0.unwrap_err().kind(),
            ErrorKind::BrokenPipe
        );
        assert!(
            UnixStream::connect(&path).await.is_err(),
            "streams are not for this socket"
        );
        std::fs::remove_file(&path)
    });
}

#[test]
fn a_packet_of_a_dropped_receive_goes_to_the_next_one_with_its_descriptors() {
    on_shard(|| async {
        for when in DropWhen::BOTH {
            let (one, other) = UnixSeqpacket::pair()?;
            let (reader, writer) = pipe()?;
            let send = async || {
                one.send_with_fds("kept", vec![reader]).await.0.unwrap();
                one.send("next").await.0.unwrap();
            };
            when.drop(other.recv_with_fds([0; 8], 1), send).await;
            let (result, bytes) = other.recv_with_fds([0; 8], 1).await;
            let (datagram, fds) = result?.unwrap();
            assert_eq!(
                (&bytes[..datagram.len], fds.len()),
                (b"kept".as_slice(), 1),
                "{when:?}"
            );
            assert!(!is_orphaned(&writer));
            let mut byte = [0];
            std::fs::File::from(fds.into_iter().next().unwrap()).read_exact(&mut byte)?;
            assert!(is_orphaned(&writer));
            assert_eq!(other.recv([0; 8]).await.0?.unwrap().len, 4);
        }
        Ok(())
    });
}

#[test]
fn an_end_that_a_dropped_receive_saw_is_seen_by_the_next_one() {
    on_shard(|| async {
        let (one, other) = UnixSeqpacket::pair()?;
        DropWhen::Done
            .drop(other.recv([0; 8]), async || drop(one))
            .await;
        assert!(other.recv([0; 8]).await.0?.is_none());
        Ok(())
    });
}

#[test]
fn what_would_be_taken_for_the_end_is_refused() {
    on_shard(|| async {
        let (one, other) = UnixSeqpacket::pair()?;
        let mut receive = pin!(other.recv([0; 8]));
        start(receive.as_mut()).await;
        for result in [
            one.send("").await.0,
            one.try_send("").0,
            one.send_vectored(vec!["", ""]).await.0,
            one.send_with_fds("", Vec::new()).await.0,
        ] {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("at least one byte"), "{error}");
        }
        one.send("x").await.0?;
        assert_eq!(receive.await.0?.unwrap().len, 1, "nothing was sent before");
        let error = other.recv(Vec::new()).await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        Ok(())
    });
}
