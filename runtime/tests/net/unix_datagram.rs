//! Unix datagrams and the descriptors they carry, through the public API.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::pin::pin;

use greenroom_runtime::net::{DescriptorsLost, UnixDatagram};

use crate::support::{DropWhen, is_orphaned, on_shard, pipe, scratch_path, start, turns};

#[test]
fn datagrams_travel_between_paths_and_names_without_a_file() {
    on_shard(|| async {
        let path = scratch_path("datagram");
        let name = SocketAddr::from_abstract_name(path.as_os_str().as_encoded_bytes())?;
        let by_path = UnixDatagram::bind(&path)?;
        let by_name = UnixDatagram::bind(&name)?;
        assert_eq!(by_path.local_addr()?.as_pathname(), Some(path.as_path()));

        by_path.send_to("to the name", &name).await.0?;
        let (result, buffer) = by_name.recv_from(Vec::with_capacity(64)).await;
        let (datagram, peer) = result?;
        assert_eq!(
            (datagram.len, buffer.as_slice()),
            (11, b"to the name".as_slice())
        );
        assert_eq!(peer.as_pathname(), Some(path.as_path()));
        by_name.send_to("to the path", peer).await.0?;
        let (result, _) = by_path.recv_from([0; 4]).await;
        let (datagram, peer) = result?;
        assert!(datagram.is_truncated());
        assert_eq!(peer.as_abstract_name(), name.as_abstract_name());

        let unbound = UnixDatagram::unbound()?;
        unbound.connect(&path)?;
        assert_eq!(unbound.peer_addr()?.as_pathname(), Some(path.as_path()));
        unbound.send("from nobody").await.0?;
        assert!(by_path.recv_from([0; 16]).await.0?.1.is_unnamed());

        let error = UnixDatagram::bind(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        drop(by_path);
        assert!(path.exists(), "the file stays");
        let error = unbound.send("x").await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path)
    });
}

#[test]
fn a_send_waits_for_room_and_loses_nothing() {
    on_shard(|| async {
        let (one, other) = UnixDatagram::pair()?;
        let mut count = 0_u32;
        while one.try_send(count.to_le_bytes()).0.is_ok() {
            count += 1;
        }
        {
            let mut send = pin!(one.send(count.to_le_bytes()));
            start(send.as_mut()).await;
            for number in 0..count {
                let (result, bytes) = other.recv([0; 4]).await;
                assert_eq!((result?.len, u32::from_le_bytes(bytes)), (4, number));
            }
            assert_eq!(send.await.0?, 4);
            let (_, bytes) = other.recv([0; 4]).await;
            assert_eq!(u32::from_le_bytes(bytes), count);
        }
        assert_eq!(
            other.try_recv([0; 4]).0.unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        Ok(())
    });
}

#[test]
fn descriptors_arrive_with_their_datagram_and_those_sent_come_back() {
    on_shard(|| async {
        let (one, other) = UnixDatagram::pair()?;
        let (reader, writer) = pipe()?;
        let number = reader.as_raw_fd();
        let (result, (buffer, sent)) = one.send_with_fds("take it", vec![reader]).await;
        assert_eq!(
            (result?, buffer, sent[0].as_raw_fd()),
            (7, "take it", number)
        );
        drop(sent);

        let (result, buffer) = other.recv_with_fds([0; 16], 4).await;
        let (datagram, mut fds) = result?;
        assert_eq!(&buffer[..datagram.len], b"take it");
        let reader = fds.remove(0);
        assert!(fds.is_empty());
        let flags = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", reader.as_raw_fd()))?;
        let flags = flags
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .unwrap();
        let flags = u32::from_str_radix(flags.trim(), 8).unwrap();
        assert_ne!(flags & 0o2_000_000, 0, "closed on exec");
        assert!(!is_orphaned(&writer));
        let mut byte = [0];
        File::from(reader).read_exact(&mut byte)?;
        assert_eq!(&byte, b"x");
        assert!(is_orphaned(&writer));

        // Without descriptors the two ways to receive are one.
        one.send("plain").await.0?;
        assert!(other.recv_with_fds([0; 16], 4).await.0?.1.is_empty());
        Ok(())
    });
}

#[test]
fn descriptors_that_nobody_asked_for_are_closed() {
    on_shard(|| async {
        let (one, other) = UnixDatagram::pair()?;
        let (reader, writer) = pipe()?;
        drop(one.send_with_fds("unasked", vec![reader]).await);
        assert_eq!(other.recv([0; 16]).await.0?.len, 7);
        assert!(is_orphaned(&writer));
        Ok(())
    });
}

#[test]
fn more_descriptors_than_expected_are_closed_and_reported_and_the_bytes_stay() {
    on_shard(|| async {
        let (one, other) = UnixDatagram::pair()?;
        for is_kept in [false, true] {
            let (first, first_writer) = pipe()?;
            let (second, second_writer) = pipe()?;
            let (third, third_writer) = pipe()?;
            let send = one.send_with_fds("three", vec![first, second, third]);
            if is_kept {
                // A dropped receive that expected enough took them; the next one expects less.
                let mut receive = Box::pin(other.recv_with_fds([0; 16], 3));
                start(receive.as_mut()).await;
                turns().await;
                drop(send.await);
                turns().await;
                drop(receive);
            } else {
                drop(send.await);
            }
            // Control memory is made of words, so one descriptor more than asked for may find room.
            let (result, buffer) = other.recv_with_fds([0; 16], 1).await;
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            let lost = error
                .get_ref()
                .unwrap()
                .downcast_ref::<DescriptorsLost>()
                .unwrap();
            assert_eq!(&buffer[..lost.len()], b"three");
            for writer in [first_writer, second_writer, third_writer] {
                assert!(is_orphaned(&writer));
            }
        }
        Ok(())
    });
}

#[test]
fn descriptors_of_a_dropped_receive_go_to_the_next_one_or_close_with_the_socket() {
    on_shard(|| async {
        for when in DropWhen::BOTH {
            for is_received in [true, false] {
                let (one, other) = UnixDatagram::pair()?;
                let (reader, writer) = pipe()?;
                let send = async || {
                    one.send_with_fds("kept", vec![reader]).await.0.unwrap();
                };
                when.drop(other.recv_with_fds([0; 16], 1), send).await;
                if is_received {
                    let (result, buffer) = other.recv_with_fds([0; 16], 1).await;
                    let (datagram, fds) = result?;
                    assert_eq!(
                        (&buffer[..datagram.len], fds.len()),
                        (b"kept".as_slice(), 1)
                    );
                    assert!(!is_orphaned(&writer));
                    drop(fds);
                } else {
                    drop(other);
                }
                turns().await;
                assert!(is_orphaned(&writer), "{when:?}, received: {is_received}");
            }
        }
        Ok(())
    });
}

#[test]
fn what_cannot_be_sent_is_refused_by_name_and_comes_back() {
    on_shard(|| async {
        let (one, other) = UnixDatagram::pair()?;
        let file: OwnedFd = File::open("/dev/null")?.into();
        let many = (0..254)
            .map(|_| file.try_clone())
            .collect::<io::Result<Vec<_>>>()?;
        let (result, (_, many)) = one.send_with_fds("x", many).await;
        assert!(result.unwrap_err().to_string().contains("254 descriptors"));
        assert_eq!(many.len(), 254);
        let long = one.send(vec![0; 10_000_000]).await.0.unwrap_err();
        assert!(long.to_string().contains("10000000 bytes"), "{long}");
        assert_eq!(long.kind(), ErrorKind::InvalidInput);
        let path = one.send_to("x", "y".repeat(108)).await.0.unwrap_err();
        assert!(path.to_string().contains("108 bytes"), "{path}");
        let nobody = UnixDatagram::unbound()?
            .send_to("x", scratch_path("none"))
            .await;
        assert_eq!(nobody.0.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(
            other.try_recv([0; 1]).0.unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        let largest = many.into_iter().take(253).collect();
        one.send_with_fds("x", largest).await.0?;
        assert_eq!(other.recv_with_fds([0; 1], 253).await.0?.1.len(), 253);
        Ok(())
    });
}
