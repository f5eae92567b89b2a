//! Closing what has an address, so that the next one can have it, through the public API.

use std::future::poll_fn;
use std::io::{ErrorKind, Read};
use std::net::TcpStream as StdStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use greenroom_runtime::net::{
    TcpListener, UdpSocket, UnixDatagram, UnixListener, UnixSeqpacketListener,
};

use crate::support::{on_shard, scratch_path, start, turns};

/// An abstract name that no other test uses.
fn name(of: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(scratch_path(of).as_os_str().as_encoded_bytes()).unwrap()
}

#[test]
fn the_port_of_a_closed_listener_is_free_with_an_accept_in_flight() {
    on_shard(|| async {
        let mut listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        for _ in 0..20 {
            start(pin!(listener.accept())).await;
            // In the kernel by now, and left armed.
            turns().await;
            listener.close().await;
            listener = TcpListener::bind(address)?;
        }
        Ok(())
    });
}

#[test]
fn connections_that_nobody_accepted_are_closed_with_their_listener() {
    on_shard(|| async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        start(pin!(listener.accept())).await;
        let mut client = StdStream::connect(address)?;
        client.set_read_timeout(Some(Duration::from_secs(60)))?;
        turns().await;
        listener.close().await;
        let outcome = client.read(&mut [0]).map_err(|error| error.kind());
        assert!(
            matches!(outcome, Ok(0) | Err(ErrorKind::ConnectionReset)),
            "{outcome:?}"
        );
        TcpListener::bind(address).map(drop)
    });
}

#[test]
fn the_port_of_a_closed_udp_socket_is_free_with_a_receive_in_flight() {
    on_shard(|| async {
        let mut socket = UdpSocket::bind("127.0.0.1:0")?;
        let address = socket.local_addr()?;
        for _ in 0..20 {
            {
                let mut receive = pin!(socket.recv([0; 8]));
                start(receive.as_mut()).await;
                turns().await;
            }
            socket.close().await;
            socket = UdpSocket::bind(address)?;
        }
        Ok(())
    });
}

#[test]
fn the_names_of_closed_unix_sockets_are_free() {
    on_shard(|| async {
        let streams = name("close-streams");
        let listener = UnixListener::bind(&streams)?;
        start(pin!(listener.accept())).await;
        turns().await;
        listener.close().await;
        UnixListener::bind(&streams)?;

        let packets = name("close-packets");
        let listener = UnixSeqpacketListener::bind(&packets)?;
        start(pin!(listener.accept())).await;
        turns().await;
        listener.close().await;
        UnixSeqpacketListener::bind(&packets)?;

        let datagrams = name("close-datagrams");
        let socket = UnixDatagram::bind(&datagrams)?;
        start(pin!(socket.recv([0; 8]))).await;
        turns().await;
        socket.close().await;
        UnixDatagram::bind(&datagrams).map(drop)
    });
}

#[test]
fn a_close_that_is_given_up_goes_on() {
    on_shard(|| async {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let address = socket.local_addr()?;
        start(pin!(socket.recv([0; 8]))).await;
        turns().await;
        poll_once(pin!(socket.close())).await;
        turns().await;
        UdpSocket::bind(address).map(drop)
    });
}

/// Polls a future once, whatever comes of it.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) {
    poll_fn(|cx| {
        drop(future.as_mut().poll(cx));
        Poll::Ready(())
    })
    .await;
}
