//! UDP.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket as NewSocket, Type};

use super::address::{ToSocketAddr, from_raw, local_addr, peer_addr};
use super::datagram::{self, Datagram};
use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::ring::ops::receive_message::{Arrival, MessageSocket};
use crate::ring::socket::Socket;

/// A UDP socket.
///
/// Sending and receiving take a buffer by value and give it back with the result. Both can be done at the same time,
/// by several tasks: one send and one receive run at a time, and further ones wait their turn.
///
/// A datagram longer than the buffer is cut, which the result tells: see [`Datagram::is_truncated`]. An error that an
/// earlier send met on its way, such as that nobody listens at the other end, is reported by the next operation on a
/// connected socket; the socket stays in order.
///
/// # Shard affinity
///
/// Belongs to the shard that made it. To serve one port from every shard, bind a socket on each with
/// [`bind_reuse_port`](Self::bind_reuse_port); the kernel spreads the datagrams by a hash of their addresses.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::UdpSocket;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let server = UdpSocket::bind("127.0.0.1:0")?;
///     let client = UdpSocket::bind("127.0.0.1:0")?;
///     client.connect(server.local_addr()?)?;
///
///     client.send("ping").await.0?;
///     let (result, buffer) = server.recv_from(Vec::with_capacity(1500)).await;
///     let (datagram, peer) = result?;
///     assert!(!datagram.is_truncated());
///     server.send_to(buffer, peer).await.0?;
///
///     let (result, buffer) = client.recv([0; 16]).await;
///     assert_eq!(&buffer[..result?.len], b"ping");
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UdpSocket {
    socket: Rc<MessageSocket>,
}

impl UdpSocket {
    /// Opens a socket at an address that nobody else uses.
    ///
    /// Port 0 takes a free port, which [`local_addr`](Self::local_addr) tells.
    ///
    /// # Errors
    ///
    /// If the address is no literal one, is in use or not of this host, or the system is out of descriptors.
    pub fn bind(address: impl ToSocketAddr) -> io::Result<UdpSocket> {
        let address = address.to_socket_addr()?;
        let socket = open(address)?;
        socket.bind(&address.into())?;
        Ok(UdpSocket::from_fd(socket.into()))
    }

    /// Opens a socket at an address that other sockets of the same user may share (`SO_REUSEPORT`).
    ///
    /// All of them have to be bound this way. The kernel gives each datagram to one of them.
    ///
    /// # Errors
    ///
    /// As for [`bind`](Self::bind).
    pub fn bind_reuse_port(address: impl ToSocketAddr) -> io::Result<UdpSocket> {
        let address = address.to_socket_addr()?;
        let socket = open(address)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        Ok(UdpSocket::from_fd(socket.into()))
    }

    /// Takes over a socket of the standard library.
    ///
    /// # Errors
    ///
    /// If it cannot be put into blocking mode. The shard never blocks on it, but older kernels would not let an
    /// operation wait on a socket in the other mode.
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<UdpSocket> {
        socket.set_nonblocking(false)?;
        Ok(UdpSocket::from_fd(socket.into()))
    }

    /// Gives the socket to the standard library, which may move it anywhere. It is in blocking mode.
    ///
    /// # Errors
    ///
    /// Gives the socket back if an operation on it, a cancelled one included, has not ended yet, or if a cancelled
    /// receive left a datagram for the next one: moving the socket would lose it.
    pub fn into_std(self) -> Result<std::net::UdpSocket, UdpSocket> {
        match Socket::into_fd(self.socket) {
            Ok(fd) => Ok(fd.into()),
            Err(socket) => Err(UdpSocket { socket }),
        }
    }

    /// Closes the socket. When the future is done, its address is free again.
    ///
    /// Dropping the socket closes it as well, but not before a receive or send that was dropped has ended, some turns later.
    /// Datagrams that nobody has received are lost. Whoever forgets the future of an operation (`mem::forget`) instead of
    /// dropping it makes this wait for ever.
    ///
    /// # Cancel safety
    ///
    /// Safe: the socket is closed even if the future is dropped.
    pub async fn close(self) {
        Socket::close(self.socket).await;
    }

    fn from_fd(fd: OwnedFd) -> UdpSocket {
        UdpSocket {
            socket: Socket::new(fd),
        }
    }

    /// Sets the one peer that [`send`](Self::send) sends to and that datagrams are accepted from.
    ///
    /// Nothing is sent, and nothing is known of the peer after it. May be called again, for another peer.
    ///
    /// # Errors
    ///
    /// If the address is no literal one, or there is no route to it.
    pub fn connect(&self, peer: impl ToSocketAddr) -> io::Result<()> {
        let peer = peer.to_socket_addr()?;
        SockRef::from(&*self.socket).connect(&peer.into())
    }

    /// Sends a datagram. Returns how many bytes it has: all of the buffer.
    ///
    /// An empty buffer is a datagram too.
    ///
    /// # Errors
    ///
    /// What the kernel reports: that the datagram is too long, that there is no route, or what an earlier datagram
    /// met on its way.
    ///
    /// # Cancel safety
    ///
    /// The datagram of a dropped send is sent whole or not at all. The buffer is lost.
    pub async fn send_to<B: IoBuf>(
        &self,
        buffer: B,
        target: impl ToSocketAddr,
    ) -> BufResult<usize, B> {
        match target.to_socket_addr() {
            Ok(target) => datagram::send_single(&self.socket, Some(&target.into()), buffer).await,
            Err(error) => (Err(error), buffer),
        }
    }

    /// Sends a datagram to the peer of a connected socket. Otherwise as [`send_to`](Self::send_to).
    ///
    /// # Errors
    ///
    /// As for [`send_to`](Self::send_to); and if the socket is not connected.
    ///
    /// # Cancel safety
    ///
    /// As for [`send_to`](Self::send_to).
    pub async fn send<B: IoBuf>(&self, buffer: B) -> BufResult<usize, B> {
        datagram::send_single(&self.socket, None, buffer).await
    }

    /// Sends one datagram put together from several buffers, in order. Otherwise as [`send_to`](Self::send_to).
    ///
    /// # Errors
    ///
    /// As for [`send_to`](Self::send_to); and if there are more than 1024 buffers.
    ///
    /// # Cancel safety
    ///
    /// As for [`send_to`](Self::send_to).
    pub async fn send_to_vectored<B: IoBuf>(
        &self,
        buffers: Vec<B>,
        target: impl ToSocketAddr,
    ) -> BufResult<usize, Vec<B>> {
        match target.to_socket_addr() {
            Ok(target) => self.send_pieces(buffers, Some(&target.into())).await,
            Err(error) => (Err(error), buffers),
        }
    }

    /// Sends one datagram put together from several buffers to the peer of a connected socket.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send); and if there are more than 1024 buffers.
    ///
    /// # Cancel safety
    ///
    /// As for [`send_to`](Self::send_to).
    pub async fn send_vectored<B: IoBuf>(&self, buffers: Vec<B>) -> BufResult<usize, Vec<B>> {
        self.send_pieces(buffers, None).await
    }

    async fn send_pieces<B: IoBuf>(
        &self,
        buffers: Vec<B>,
        target: Option<&SockAddr>,
    ) -> BufResult<usize, Vec<B>> {
        let (result, buffers, _no_fds) =
            datagram::send(&self.socket, target, buffers, Vec::new()).await;
        (result, buffers)
    }

    /// Receives a datagram. Returns how much of it is in the buffer, and who sent it.
    ///
    /// Fills the buffer from its start, up to its capacity. What does not fit is lost, which the result tells.
    ///
    /// # Errors
    ///
    /// What the kernel reports, and if the buffer has no capacity.
    ///
    /// # Cancel safety
    ///
    /// Safe: a datagram that arrives for a dropped receive is kept for the next one, with the address of its sender.
    /// It is cut to the buffer of the dropped receive, which is lost.
    pub async fn recv_from<B: IoBufMut>(&self, buffer: B) -> BufResult<(Datagram, SocketAddr), B> {
        let (result, buffer) = datagram::receive_single(&self.socket, buffer, 0).await;
        (result.and_then(|arrival| with_peer(&arrival)), buffer)
    }

    /// Receives a datagram. As [`recv_from`](Self::recv_from), without the address.
    ///
    /// # Errors
    ///
    /// As for [`recv_from`](Self::recv_from).
    ///
    /// # Cancel safety
    ///
    /// As for [`recv_from`](Self::recv_from).
    pub async fn recv<B: IoBufMut>(&self, buffer: B) -> BufResult<Datagram, B> {
        let (result, buffer) = datagram::receive_single(&self.socket, buffer, 0).await;
        (result.map(|arrival| Datagram::from(&arrival)), buffer)
    }

    /// Receives one datagram into several buffers, one after the other. Otherwise as [`recv_from`](Self::recv_from).
    ///
    /// # Errors
    ///
    /// As for [`recv_from`](Self::recv_from); and if there are more than 1024 buffers.
    ///
    /// # Cancel safety
    ///
    /// As for [`recv_from`](Self::recv_from).
    pub async fn recv_from_vectored<B: IoBufMut>(
        &self,
        buffers: Vec<B>,
    ) -> BufResult<(Datagram, SocketAddr), Vec<B>> {
        let (result, buffers) = datagram::receive(&self.socket, buffers, 0).await;
        (result.and_then(|arrival| with_peer(&arrival)), buffers)
    }

    /// Sends a datagram if that is possible at once.
    ///
    /// # Errors
    ///
    /// As for [`send_to`](Self::send_to); [`WouldBlock`](io::ErrorKind::WouldBlock) if the socket has no room, or
    /// another send is in flight.
    pub fn try_send_to<B: IoBuf>(
        &self,
        buffer: B,
        target: impl ToSocketAddr,
    ) -> BufResult<usize, B> {
        match target.to_socket_addr() {
            Ok(target) => datagram::try_send_single(&self.socket, Some(&target.into()), buffer),
            Err(error) => (Err(error), buffer),
        }
    }

    /// Sends a datagram to the peer of a connected socket if that is possible at once.
    ///
    /// # Errors
    ///
    /// As for [`try_send_to`](Self::try_send_to); and if the socket is not connected.
    pub fn try_send<B: IoBuf>(&self, buffer: B) -> BufResult<usize, B> {
        datagram::try_send_single(&self.socket, None, buffer)
    }

    /// Receives a datagram if there is one.
    ///
    /// # Errors
    ///
    /// As for [`recv_from`](Self::recv_from); [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, or another
    /// receive, which comes first, is in flight.
    pub fn try_recv_from<B: IoBufMut>(&self, buffer: B) -> BufResult<(Datagram, SocketAddr), B> {
        let (result, buffer) = datagram::try_receive_single(&self.socket, buffer, 0);
        (result.and_then(|arrival| with_peer(&arrival)), buffer)
    }

    /// Receives a datagram if there is one. As [`try_recv_from`](Self::try_recv_from), without the address.
    ///
    /// # Errors
    ///
    /// As for [`try_recv_from`](Self::try_recv_from).
    pub fn try_recv<B: IoBufMut>(&self, buffer: B) -> BufResult<Datagram, B> {
        let (result, buffer) = datagram::try_receive_single(&self.socket, buffer, 0);
        (result.map(|arrival| Datagram::from(&arrival)), buffer)
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_addr(&*self.socket)
    }

    /// Returns the peer of a connected socket.
    ///
    /// # Errors
    ///
    /// If the socket is not connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        peer_addr(&*self.socket)
    }

    /// The socket, for what can be asked of it without waiting.
    pub(super) fn options(&self) -> SockRef<'_> {
        SockRef::from(&*self.socket)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket")
            .field("local_addr", &self.local_addr().ok())
            .field("peer_addr", &self.peer_addr().ok())
            .finish()
    }
}

fn open(address: SocketAddr) -> io::Result<NewSocket> {
    NewSocket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )
}

fn with_peer(arrival: &Arrival) -> io::Result<(Datagram, SocketAddr)> {
    let peer = from_raw(&arrival.envelope.peer)?;
    Ok((Datagram::from(arrival), peer))
}
