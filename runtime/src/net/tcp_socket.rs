//! A TCP socket before it listens or connects.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::address::{ToSocketAddr, local_addr};
use super::connect::connected;
use super::tcp_listener::TcpListener;
use super::tcp_options::Keepalive;
use super::tcp_stream::TcpStream;

/// A TCP socket that is neither listening nor connected yet.
///
/// For what has to be set before: [`TcpListener::bind`] and [`TcpStream::connect`] do without.
///
/// # Shard affinity
///
/// Nothing of it is in use yet, so it may be moved to another shard.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::{TcpSocket, TcpStream};
/// use greenroom_runtime::{Builder, spawn};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let socket = TcpSocket::new_v4()?;
///     socket.set_reuse_port(true)?;
///     // Accepted connections inherit it.
///     socket.set_recv_buffer_size(1 << 16)?;
///     socket.bind("127.0.0.1:0")?;
///     let listener = socket.listen(16)?;
///
///     let client = spawn(TcpStream::connect(listener.local_addr()?));
///     let (stream, _peer) = listener.accept().await?;
///     assert!(stream.recv_buffer_size()? >= 1 << 16);
///     client.await.unwrap().map(drop)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TcpSocket {
    socket: Socket,
}

impl TcpSocket {
    /// Makes a socket for IPv4.
    ///
    /// # Errors
    ///
    /// If the system is out of descriptors.
    pub fn new_v4() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV4)
    }

    /// Makes a socket for IPv6.
    ///
    /// # Errors
    ///
    /// If the system is out of descriptors, or has no IPv6.
    pub fn new_v6() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV6)
    }

    fn new(domain: Domain) -> io::Result<TcpSocket> {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        Ok(TcpSocket { socket })
    }

    /// Sets whether a port may be bound whose last connections are still winding down (`SO_REUSEADDR`).
    ///
    /// # Errors
    ///
    /// What the kernel reports, here and in the other options.
    pub fn set_reuse_address(&self, reuse: bool) -> io::Result<()> {
        self.socket.set_reuse_address(reuse)
    }

    /// Sets whether other listeners of the same user may share the address (`SO_REUSEPORT`).
    ///
    /// # Errors
    ///
    /// As for [`set_reuse_address`](Self::set_reuse_address).
    pub fn set_reuse_port(&self, reuse: bool) -> io::Result<()> {
        self.socket.set_reuse_port(reuse)
    }

    /// Sets whether an IPv6 socket leaves IPv4 addresses to others.
    ///
    /// # Errors
    ///
    /// As for [`set_reuse_address`](Self::set_reuse_address).
    pub fn set_only_v6(&self, only: bool) -> io::Result<()> {
        self.socket.set_only_v6(only)
    }

    /// Sets whether small writes are sent at once. Accepted connections inherit it, as all that follows.
    ///
    /// # Errors
    ///
    /// As for [`set_reuse_address`](Self::set_reuse_address).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.socket.set_tcp_nodelay(nodelay)
    }

    /// Sets how a silent peer is asked for a sign of life.
    ///
    /// # Errors
    ///
    /// As for [`TcpStream::set_keepalive`].
    pub fn set_keepalive(&self, keepalive: Keepalive) -> io::Result<()> {
        keepalive.apply(&SockRef::from(&self.socket))
    }

    /// Sets how many bytes the kernel keeps for writes that are on their way.
    ///
    /// # Errors
    ///
    /// As for [`set_reuse_address`](Self::set_reuse_address).
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.socket.set_send_buffer_size(bytes)
    }

    /// Sets how many bytes the kernel keeps for reads. It bounds the window that is offered to the peer.
    ///
    /// # Errors
    ///
    /// As for [`set_reuse_address`](Self::set_reuse_address).
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.socket.set_recv_buffer_size(bytes)
    }

    /// Gives the socket an address. Port 0 takes a free port.
    ///
    /// # Errors
    ///
    /// If the address is no literal one, of the other family, in use, or not of this host.
    pub fn bind(&self, address: impl ToSocketAddr) -> io::Result<()> {
        self.socket.bind(&address.to_socket_addr()?.into())
    }

    /// Returns the address it was bound to.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_addr(&self.socket)
    }

    /// Listens for connections, of which the kernel keeps up to `backlog` ready for an accept.
    ///
    /// The system caps the number (`net.core.somaxconn`).
    ///
    /// # Errors
    ///
    /// If another socket listens at the address.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.socket
            .listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        Ok(TcpListener::from_fd(self.socket.into()))
    }

    /// Connects to a peer.
    ///
    /// # Errors
    ///
    /// If the address is no literal one or of the other family, or the peer refuses or cannot be reached.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped connect closes its socket, connected or not.
    pub async fn connect(self, address: impl ToSocketAddr) -> io::Result<TcpStream> {
        let address = address.to_socket_addr()?;
        let fd = connected(self.socket.into(), address.into()).await?;
        Ok(TcpStream::from_fd(fd))
    }
}

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSocket")
            .field("local_addr", &self.local_addr().ok())
            .finish()
    }
}
