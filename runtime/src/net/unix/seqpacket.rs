//! Unix connections that keep the borders of messages.

use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::SocketAddr;
use std::rc::Rc;

use socket2::{Domain, SockRef, Socket as NewSocket, Type};

use super::address::{ToUnixAddr, from_raw};
use super::connect::connect;
use super::credentials::PeerCred;
use super::descriptors::with_fds;
use super::listener::listen;
use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::net::acceptor::Acceptor;
use crate::net::datagram::{self, Datagram, invalid};
use crate::ring::ops::pieces::Single;
use crate::ring::ops::receive_message::{Arrival, MessageSocket};
use crate::ring::socket::Socket;

/// A Unix connection that carries packets: each arrives whole, in order, and alone.
///
/// It is connected like a stream and has an end like one. A packet longer than the buffer is cut, which the result tells:
/// see [`Datagram::is_truncated`]. There are no empty packets, because the kernel does not tell them from the end.
///
/// # Shard affinity
///
/// Belongs to the shard that made it.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::UnixSeqpacket;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let (one, other) = UnixSeqpacket::pair()?;
///     one.send("first").await.0?;
///     one.send("second").await.0?;
///     drop(one);
///     let mut packets = Vec::new();
///     loop {
///         let (result, packet) = other.recv(Vec::with_capacity(64)).await;
///         let Some(_datagram) = result? else { break };
///         packets.push(packet);
///     }
///     assert_eq!(packets, [b"first".to_vec(), b"second".to_vec()]);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnixSeqpacket {
    socket: Rc<MessageSocket>,
}

impl UnixSeqpacket {
    /// Connects to who listens at an address.
    ///
    /// # Errors
    ///
    /// As for [`UnixStream::connect`](super::UnixStream::connect); and if who listens there expects streams.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped connect closes its socket, connected or not.
    pub async fn connect(address: impl ToUnixAddr) -> io::Result<UnixSeqpacket> {
        let fd = connect(Type::SEQPACKET, address).await?;
        Ok(UnixSeqpacket::from_fd(fd))
    }

    /// Opens two sockets that are connected with each other.
    ///
    /// # Errors
    ///
    /// If the system is out of descriptors.
    pub fn pair() -> io::Result<(UnixSeqpacket, UnixSeqpacket)> {
        let (one, other) = NewSocket::pair(Domain::UNIX, Type::SEQPACKET, None)?;
        Ok((
            UnixSeqpacket::from_fd(one.into()),
            UnixSeqpacket::from_fd(other.into()),
        ))
    }

    fn from_fd(fd: OwnedFd) -> UnixSeqpacket {
        UnixSeqpacket {
            socket: Socket::new(fd),
        }
    }

    /// Sends a packet, and waits while the peer has no room. Returns how many bytes it has: all of the buffer.
    ///
    /// # Errors
    ///
    /// What the kernel reports: that the packet is too long, or the peer is gone; and if the buffer is empty.
    ///
    /// # Cancel safety
    ///
    /// The packet of a dropped send is sent whole or not at all. The buffer is lost.
    pub async fn send<B: IoBuf>(&self, buffer: B) -> BufResult<usize, B> {
        if buffer.is_empty() {
            return (Err(empty()), buffer);
        }
        datagram::send_single(&self.socket, None, buffer).await
    }

    /// Sends one packet put together from several buffers, in order. Otherwise as [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send); and if there are more than 1024 buffers.
    ///
    /// # Cancel safety
    ///
    /// As for [`send`](Self::send).
    pub async fn send_vectored<B: IoBuf>(&self, buffers: Vec<B>) -> BufResult<usize, Vec<B>> {
        if buffers.iter().all(IoBuf::is_empty) {
            return (Err(empty()), buffers);
        }
        let (result, buffers, _no_fds) =
            datagram::send(&self.socket, None, buffers, Vec::new()).await;
        (result, buffers)
    }

    /// Sends a packet, and descriptors with it. Those come back with the buffer, as copies arrive.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send); and if there are more than 253 descriptors.
    ///
    /// # Cancel safety
    ///
    /// As for [`send`](Self::send). The descriptors of a dropped send are closed here.
    pub async fn send_with_fds<B: IoBuf>(
        &self,
        buffer: B,
        fds: Vec<OwnedFd>,
    ) -> BufResult<usize, (B, Vec<OwnedFd>)> {
        if buffer.is_empty() {
            return (Err(empty()), (buffer, fds));
        }
        let (result, Single(buffer), fds) =
            datagram::send(&self.socket, None, Single(buffer), fds).await;
        (result, (buffer, fds))
    }

    /// Receives a packet. Returns how much of it is in the buffer; `None` at the end.
    ///
    /// Fills the buffer from its start, up to its capacity. What does not fit is lost, which the result tells.
    /// Descriptors that come with it are closed.
    ///
    /// # Errors
    ///
    /// What the kernel reports, and if the buffer has no capacity.
    ///
    /// # Cancel safety
    ///
    /// Safe: a packet that arrives for a dropped receive is kept for the next one, with its descriptors. It is cut to the
    /// buffer of the dropped receive, which is lost.
    pub async fn recv<B: IoBufMut>(&self, buffer: B) -> BufResult<Option<Datagram>, B> {
        let (result, buffer) = datagram::receive_single(&self.socket, buffer, 0).await;
        (result.map(unless_over), buffer)
    }

    /// Receives one packet into several buffers, one after the other. Otherwise as [`recv`](Self::recv).
    ///
    /// # Errors
    ///
    /// As for [`recv`](Self::recv); and if there are more than 1024 buffers.
    ///
    /// # Cancel safety
    ///
    /// As for [`recv`](Self::recv).
    pub async fn recv_vectored<B: IoBufMut>(
        &self,
        buffers: Vec<B>,
    ) -> BufResult<Option<Datagram>, Vec<B>> {
        let (result, buffers) = datagram::receive(&self.socket, buffers, 0).await;
        (result.map(unless_over), buffers)
    }

    /// Receives a packet and up to `fds_max` descriptors that come with it; `None` at the end.
    ///
    /// They are closed when this process starts another program (`CLOEXEC`).
    ///
    /// # Errors
    ///
    /// As for [`recv`](Self::recv); and [`DescriptorsLost`](super::DescriptorsLost) if more descriptors came than
    /// expected, or than the process has room for. Then the packet is in the buffer, and those that came are closed.
    ///
    /// # Cancel safety
    ///
    /// As for [`recv`](Self::recv).
    pub async fn recv_with_fds<B: IoBufMut>(
        &self,
        buffer: B,
        fds_max: usize,
    ) -> BufResult<Option<(Datagram, Vec<OwnedFd>)>, B> {
        let (result, buffer) = datagram::receive_single(&self.socket, buffer, fds_max).await;
        let result = result.and_then(|arrival| match arrival.full_len {
            0 => Ok(None),
            _ => with_fds(arrival, fds_max).map(Some),
        });
        (result, buffer)
    }

    /// Sends a packet if that is possible at once.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send); [`WouldBlock`](io::ErrorKind::WouldBlock) if the peer has no room, or another send is
    /// in flight.
    pub fn try_send<B: IoBuf>(&self, buffer: B) -> BufResult<usize, B> {
        if buffer.is_empty() {
            return (Err(empty()), buffer);
        }
        datagram::try_send_single(&self.socket, None, buffer)
    }

    /// Receives a packet if there is one; `None` at the end.
    ///
    /// # Errors
    ///
    /// As for [`recv`](Self::recv); [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, or another receive, which
    /// comes first, is in flight.
    pub fn try_recv<B: IoBufMut>(&self, buffer: B) -> BufResult<Option<Datagram>, B> {
        let (result, buffer) = datagram::try_receive_single(&self.socket, buffer, 0);
        (result.map(unless_over), buffer)
    }

    /// Shuts down receiving, sending or both, after a send in flight.
    ///
    /// # Errors
    ///
    /// What the kernel reports, such as that the connection is already gone.
    ///
    /// # Cancel safety
    ///
    /// Safe: it happens or it does not.
    pub async fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let _lane = self.socket.take_outbound().await;
        // Between processes of one host this is a flag, and waits for nothing.
        SockRef::from(&*self.socket).shutdown(how)
    }

    /// Returns the process at the other end, as it was when it connected.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn peer_cred(&self) -> io::Result<PeerCred> {
        PeerCred::of(&*self.socket)
    }

    /// Returns the address of the other end, which mostly has none.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        from_raw(&SockRef::from(&*self.socket).peer_addr()?)
    }

    /// Returns the address of this end, which may have none.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        from_raw(&SockRef::from(&*self.socket).local_addr()?)
    }
}

impl AsFd for UnixSeqpacket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for UnixSeqpacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixSeqpacket")
            .field("local_addr", &self.local_addr().ok())
            .field("peer_addr", &self.peer_addr().ok())
            .finish()
    }
}

/// A Unix socket that listens for connections that carry packets.
///
/// What is said of the file of a [`UnixListener`](super::UnixListener) holds here too.
///
/// # Shard affinity
///
/// Belongs to the shard that made it.
///
/// # Examples
///
/// ```
/// use std::os::linux::net::SocketAddrExt;
/// use std::os::unix::net::SocketAddr;
/// use greenroom_runtime::net::{UnixSeqpacket, UnixSeqpacketListener};
/// use greenroom_runtime::{Builder, spawn};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let name = SocketAddr::from_abstract_name(format!("packets-{}", std::process::id()))?;
///     let listener = UnixSeqpacketListener::bind(&name)?;
///     let client = spawn(UnixSeqpacket::connect(name));
///     let server = listener.accept().await?;
///     client.await.unwrap()?.send("packet").await.0?;
///     assert_eq!(server.recv([0; 16]).await.0?.unwrap().len, 6);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnixSeqpacketListener {
    acceptor: Acceptor,
}

impl UnixSeqpacketListener {
    /// Listens at an address that nobody else uses.
    ///
    /// # Errors
    ///
    /// As for [`UnixListener::bind`](super::UnixListener::bind).
    pub fn bind(address: impl ToUnixAddr) -> io::Result<UnixSeqpacketListener> {
        let fd = listen(Type::SEQPACKET, address)?;
        Ok(UnixSeqpacketListener {
            acceptor: Acceptor::new(fd),
        })
    }

    /// Waits for a connection. Otherwise as [`TcpListener::accept`](crate::net::TcpListener::accept).
    ///
    /// # Errors
    ///
    /// What the kernel reports about the listener, or that the system is out of descriptors or memory.
    ///
    /// # Cancel safety
    ///
    /// Safe: no connection is lost with a dropped accept.
    pub async fn accept(&self) -> io::Result<UnixSeqpacket> {
        Ok(UnixSeqpacket::from_fd(self.acceptor.accept().await?))
    }

    /// Closes the listener. When the future is done, its name is free again; the file of a path stays.
    ///
    /// Otherwise as [`TcpListener::close`](crate::net::TcpListener::close).
    ///
    /// # Cancel safety
    ///
    /// Safe: the listener is closed even if the future is dropped.
    pub async fn close(self) {
        self.acceptor.close().await;
    }

    /// Returns the address it listens at.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        from_raw(&SockRef::from(&**self.acceptor.socket()).local_addr()?)
    }
}

impl AsFd for UnixSeqpacketListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.acceptor.socket().as_fd()
    }
}

impl fmt::Debug for UnixSeqpacketListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixSeqpacketListener")
            .field("local_addr", &self.local_addr().ok())
            .finish()
    }
}

/// A receive of no bytes is the end.
#[expect(
    clippy::needless_pass_by_value,
    reason = "closes the descriptors that nobody asked for"
)]
fn unless_over(arrival: Arrival) -> Option<Datagram> {
    (arrival.full_len > 0).then(|| Datagram::from(&arrival))
}

fn empty() -> io::Error {
    invalid("an empty packet would read as the end: send at least one byte".to_owned())
}
