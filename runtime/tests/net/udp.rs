//! UDP sockets, through the public API.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket as StdSocket};
use std::pin::pin;

use greenroom_runtime::buffer::IoBuf;
use greenroom_runtime::net::UdpSocket;
use greenroom_runtime::spawn;

use crate::support::{DropWhen, on_shard, start, turns};

/// A socket, and one of the standard library that it is connected with.
fn connected() -> io::Result<(UdpSocket, StdSocket)> {
    let far = StdSocket::bind("127.0.0.1:0")?;
    let near = UdpSocket::bind("127.0.0.1:0")?;
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    Ok((near, far))
}

/// A port that nobody listens at.
fn closed_port() -> io::Result<SocketAddr> {
    StdSocket::bind("127.0.0.1:0")?.local_addr()
}

#[test]
fn a_datagram_arrives_whole_with_the_address_of_its_sender() {
    on_shard(|| async {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let (one, other) = (UdpSocket::bind(host)?, UdpSocket::bind(host)?);
            assert_eq!(one.send_to("first", other.local_addr()?).await.0?, 5);
            assert_eq!(one.send_to("", other.local_addr()?).await.0?, 0);
            assert_eq!(
                one.send_to(vec![7; 60_000], other.local_addr()?).await.0?,
                60_000
            );
            let (result, buffer) = other.recv_from(Vec::with_capacity(64)).await;
            let (datagram, peer) = result?;
            assert_eq!((datagram.len, datagram.full_len), (5, 5));
            assert_eq!(
                (buffer.as_slice(), peer),
                (b"first".as_slice(), one.local_addr()?)
            );
            let (result, buffer) = other.recv_from(buffer).await;
            assert_eq!((result?.0.len, buffer.len()), (0, 0));
            let (result, buffer) = other.recv_from(vec![0; 65_536]).await;
            assert_eq!(result?.0.len, 60_000);
            assert!(buffer.iter().all(|&byte| byte == 7));
        }
        Ok(())
    });
}

#[test]
fn a_datagram_that_is_longer_than_the_buffer_says_so() {
    on_shard(|| async {
        let (socket, peer) = connected()?;
        for _ in 0..3 {
            peer.send(b"0123456789")?;
        }
        let (result, buffer) = socket.recv([0; 4]).await;
        let datagram = result?;
        assert!(datagram.is_truncated());
        assert_eq!((datagram.len, datagram.full_len, &buffer), (4, 10, b"0123"));
        let (result, buffers) = socket.recv_from_vectored(vec![[0; 3], [0; 3]]).await;
        assert_eq!((result?.0.full_len, buffers), (10, vec![*b"012", *b"345"]));
        let (result, _) = socket.try_recv([0; 9]);
        assert_eq!(result?.full_len, 10);
        Ok(())
    });
}

#[test]
fn several_buffers_make_one_datagram() {
    on_shard(|| async {
        let (socket, peer) = connected()?;
        assert_eq!(socket.send_vectored(vec!["ab", "", "cde"]).await.0?, 5);
        assert_eq!(
            socket
                .send_to_vectored(vec![[b'f'; 2]; 2], peer.local_addr()?)
                .await
                .0?,
            4
        );
        let mut buffer = [0; 16];
        assert_eq!(peer.recv(&mut buffer)?, 5);
        assert_eq!(&buffer[..5], b"abcde");
        assert_eq!(peer.recv(&mut buffer)?, 4);

        peer.send(b"0123456")?;
        let buffers = vec![Vec::with_capacity(4), Vec::with_capacity(8), vec![1; 2]];
        let (result, buffers) = socket.recv_from_vectored(buffers).await;
        let (datagram, from) = result?;
        assert_eq!(
            (datagram.len, datagram.is_truncated(), from),
            (7, false, peer.local_addr()?)
        );
        assert_eq!(buffers, [b"0123".to_vec(), b"456".to_vec(), Vec::new()]);
        Ok(())
    });
}

#[test]
fn a_datagram_of_a_dropped_receive_goes_to_the_next_one_with_its_address() {
    on_shard(|| async {
        for when in DropWhen::BOTH {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            let to = socket.local_addr()?;
            let (one, other) = (
                StdSocket::bind("127.0.0.1:0")?,
                StdSocket::bind("127.0.0.1:0")?,
            );
            let send = async || {
                one.send_to(b"first", to).unwrap();
                other.send_to(b"second", to).unwrap();
            };
            when.drop(socket.recv_from(Vec::with_capacity(100)), send)
                .await;
            let (result, buffer) = socket.recv_from(Vec::with_capacity(100)).await;
            assert_eq!(
                (result?.1, buffer.as_slice()),
                (one.local_addr()?, b"first".as_slice()),
                "{when:?}"
            );
            let (result, buffer) = socket.recv_from(buffer).await;
            assert_eq!(
                (result?.1, buffer.as_slice()),
                (other.local_addr()?, b"second".as_slice()),
                "{when:?}"
            );
        }
        Ok(())
    });
}

#[test]
fn many_dropped_receives_lose_and_reorder_nothing() {
    on_shard(|| async {
        let (socket, peer) = connected()?;
        for round in 0..100_u8 {
            let mut dropped = Box::pin(socket.recv([0; 8]));
            start(dropped.as_mut()).await;
            if round % 3 == 0 {
                turns().await;
            }
            peer.send(&[round])?;
            if round % 2 == 0 {
                turns().await;
            }
            drop(dropped);
            let (result, buffer) = socket.recv([0; 8]).await;
            assert_eq!((result?.len, buffer[0]), (1, round));
        }
        Ok(())
    });
}

#[test]
fn a_refused_peer_is_reported_once_and_the_socket_goes_on() {
    on_shard(|| async {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let peer = closed_port()?;
        socket.connect(peer)?;
        assert_eq!(socket.peer_addr()?, peer);
        socket.send("anybody there?").await.0?;
        let error = socket.recv([0; 8]).await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);

        let peer = StdSocket::bind(peer)?;
        socket.send("now").await.0?;
        let mut buffer = [0; 8];
        let (count, from) = peer.recv_from(&mut buffer)?;
        assert_eq!((count, from), (3, socket.local_addr()?));
        peer.send_to(b"yes", from)?;
        assert_eq!(socket.recv([0; 8]).await.0?.len, 3);
        Ok(())
    });
}

#[test]
fn an_error_of_a_dropped_receive_goes_to_the_next_one() {
    on_shard(|| async {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(closed_port()?)?;
        let send = async || {
            socket.try_send("anybody there?").0.unwrap();
        };
        DropWhen::Done.drop(socket.recv([0; 8]), send).await;
        let error = socket.recv([0; 8]).await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(socket.take_error()?.is_none());
        Ok(())
    });
}

#[test]
fn what_does_not_wait_leaves_what_is_in_flight_its_turn() {
    on_shard(|| async {
        let (socket, peer) = connected()?;
        assert_eq!(
            socket.try_recv([0; 8]).0.unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        assert_eq!(socket.try_send("to you").0?, 6);
        assert_eq!(peer.recv(&mut [0; 8])?, 6);
        {
            let mut receive = pin!(socket.recv([0; 8]));
            start(receive.as_mut()).await;
            peer.send(b"for the first")?;
            assert_eq!(
                socket.try_recv([0; 8]).0.unwrap_err().kind(),
                ErrorKind::WouldBlock
            );
            assert_eq!(receive.await.0?.full_len, 13);
        }
        DropWhen::Done
            .drop(socket.recv([0; 8]), async || {
                peer.send(b"kept").unwrap();
            })
            .await;
        let (result, buffer) = socket.try_recv_from(Vec::with_capacity(8));
        assert_eq!(
            (result?.1, buffer.as_slice()),
            (peer.local_addr()?, b"kept".as_slice())
        );
        Ok(())
    });
}

#[test]
fn each_datagram_goes_to_one_of_several_receivers() {
    on_shard(|| async {
        let (socket, peer) = connected()?;
        let socket = std::rc::Rc::new(socket);
        let receivers: Vec<_> = (0..4)
            .map(|_| {
                let socket = socket.clone();
                spawn(async move {
                    let mut seen = Vec::new();
                    while seen.len() < 25 {
                        let (result, buffer) = socket.recv([0; 4]).await;
                        assert_eq!(result.unwrap().len, 1);
                        seen.push(buffer[0]);
                    }
                    seen
                })
            })
            .collect();
        for number in 0..100 {
            peer.send(&[number])?;
        }
        let mut seen = Vec::new();
        for receiver in receivers {
            seen.extend(receiver.await.unwrap());
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<u8>>());
        Ok(())
    });
}

#[test]
fn options_are_set_and_read_back() {
    on_shard(|| async {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        assert!(!socket.broadcast()?);
        let port = socket.local_addr()?.port();
        let error = socket
            .send_to("all", (Ipv4Addr::BROADCAST, port))
            .await
            .0
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        socket.set_broadcast(true)?;
        assert!(socket.broadcast()?);
        socket.set_ttl(9)?;
        assert_eq!(socket.ttl()?, 9);
        socket.set_recv_buffer_size(20_000)?;
        assert!(socket.recv_buffer_size()? >= 20_000);
        socket.set_send_buffer_size(20_000)?;
        assert!(socket.send_buffer_size()? >= 20_000);
        let v6 = UdpSocket::bind("[::1]:0")?;
        v6.set_ttl(7)?;
        assert_eq!(v6.ttl()?, 7);
        Ok(())
    });
}

#[test]
fn a_group_is_heard_by_its_members_only() {
    on_shard(|| async {
        let group = Ipv4Addr::new(239, 77, 3, 1);
        let member = UdpSocket::bind("0.0.0.0:0")?;
        member.join_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
        let again = member
            .join_multicast_v4(group, Ipv4Addr::LOCALHOST)
            .unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AddrInUse);
        assert!(
            member
                .join_multicast_v4(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)
                .is_err()
        );
        let sender = UdpSocket::bind("127.0.0.1:0")?;
        sender.set_multicast_interface_v4(Ipv4Addr::LOCALHOST)?;
        sender.set_multicast_ttl_v4(1)?;
        let to = (group, member.local_addr()?.port());
        sender.send_to("members", to).await.0?;
        assert_eq!(member.recv([0; 16]).await.0?.len, 7);
        member.leave_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
        assert!(
            member
                .leave_multicast_v4(group, Ipv4Addr::LOCALHOST)
                .is_err()
        );
        sender.set_multicast_loop_v4(false)?;
        sender.send_to("nobody", to).await.0?;
        turns().await;
        assert_eq!(
            member.try_recv([0; 16]).0.unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        Ok(())
    });
}

#[test]
fn one_port_is_shared_by_those_who_say_so() {
    on_shard(|| async {
        let first = UdpSocket::bind_reuse_port("127.0.0.1:0")?;
        let second = UdpSocket::bind_reuse_port(first.local_addr()?)?;
        assert_eq!(first.local_addr()?, second.local_addr()?);
        let error = UdpSocket::bind(first.local_addr()?).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        Ok(())
    });
}

#[test]
fn a_socket_moves_through_the_standard_library_unless_something_is_kept_in_it() {
    on_shard(|| async {
        let (socket, peer) = connected()?;
        DropWhen::Done
            .drop(socket.recv([0; 8]), async || {
                peer.send(b"kept").unwrap();
            })
            .await;
        let socket = socket.into_std().unwrap_err();
        assert_eq!(socket.recv([0; 8]).await.0?.len, 4);
        let socket = UdpSocket::from_std(socket.into_std().unwrap())?;
        peer.send(b"again")?;
        assert_eq!(socket.recv([0; 8]).await.0?.len, 5);
        Ok(())
    });
}

/// Checks that an error names what is wrong.
#[track_caller]
fn assert_names<T: std::fmt::Debug>(result: io::Result<T>, expected: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn what_cannot_be_sent_or_received_is_refused_by_name() {
    on_shard(|| async {
        let (socket, peer) = connected()?;
        let to = peer.local_addr()?;
        peer.send(b"stays")?;
        assert_names(socket.recv(Vec::new()).await.0, "without capacity");
        assert_names(socket.try_recv(Vec::new()).0, "without capacity");
        assert_names(
            socket.recv_from_vectored(Vec::<[u8; 1]>::new()).await.0,
            "without capacity",
        );
        assert_names(socket.send(vec![0; 65_508]).await.0, "65508 bytes");
        assert_names(socket.try_send_to(vec![0; 70_000], to).0, "70000 bytes");
        assert_names(
            socket.send_vectored(vec!["x"; 1025]).await.0,
            "1025 buffers",
        );
        assert_names(
            socket.recv_from_vectored(vec![[0; 1]; 1025]).await.0,
            "1025 buffers",
        );
        assert_names(socket.send_to("x", "localhost:1").await.0, "`localhost:1`");
        assert_names(UdpSocket::bind("nowhere").map(drop), "`nowhere`");
        let unconnected = UdpSocket::bind("127.0.0.1:0")?;
        assert!(unconnected.send("x").await.0.is_err());
        assert_eq!(
            socket.recv([0; 8]).await.0?.len,
            5,
            "nothing took the datagram"
        );
        Ok(())
    });
}

#[test]
fn a_buffer_of_more_than_two_gibibytes_is_too_long_to_send_and_fine_to_receive_into() {
    on_shard(|| async {
        let (socket, peer) = connected()?;
        // Zeroed memory of this size is mapped, not touched.
        let huge = vec![0_u8; (1 << 31) + 10];
        let (result, huge) = socket.send(huge).await;
        assert_names(result, "2147483658 bytes");
        peer.send(b"small")?;
        let (result, huge) = socket.recv(huge).await;
        assert_eq!((result?.len, huge.as_slice()), (5, b"small".as_slice()));
        peer.send(b"part")?;
        let (result, part) = socket.recv(huge.slice(5..)).await;
        assert_eq!((result?.len, &part[..]), (4, b"part".as_slice()));
        Ok(())
    });
}
