//! Accepting Unix connections.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::SocketAddr;

use socket2::{Domain, SockRef, Socket as NewSocket, Type};

use super::address::{ToUnixAddr, from_raw, to_raw};
use super::error::{Attempt, UnixSocketError};
use super::stream::UnixStream;
use crate::net::acceptor::Acceptor;

/// Connections the kernel keeps ready for an accept. Whoever connects beyond that waits.
const BACKLOG: i32 = 1024;

/// A Unix socket that listens for streams.
///
/// The file of a socket that listens at a path stays when the listener is dropped: whether somebody else listens there
/// by then cannot be told. A path whose file is there cannot be bound ([`AddrInUse`](io::ErrorKind::AddrInUse)); who
/// starts again after a crash removes the file first. Abstract names have no file and none of this.
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
/// use greenroom_runtime::net::{UnixListener, UnixStream};
/// use greenroom_runtime::{Builder, spawn};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let name = SocketAddr::from_abstract_name(format!("example-{}", std::process::id()))?;
///     let listener = UnixListener::bind(&name)?;
///     let client = spawn(UnixStream::connect(name));
///     let (_stream, peer) = listener.accept().await?;
///     assert!(peer.is_unnamed());
///     client.await.unwrap().map(drop)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnixListener {
    acceptor: Acceptor,
}

impl UnixListener {
    /// Listens at an address that nobody else uses.
    ///
    /// # Errors
    ///
    /// If the address is none, is in use, or its file is there or cannot be made; if the system is out of descriptors.
    pub fn bind(address: impl ToUnixAddr) -> io::Result<UnixListener> {
        let fd = listen(Type::STREAM, address)?;
        Ok(UnixListener::from_fd(fd))
    }

    /// Takes over a listener of the standard library.
    ///
    /// # Errors
    ///
    /// If it cannot be put into blocking mode. The shard never blocks on it, but older kernels would not let an
    /// operation wait on a socket in the other mode.
    pub fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<UnixListener> {
        listener.set_nonblocking(false)?;
        Ok(UnixListener::from_fd(listener.into()))
    }

    fn from_fd(fd: OwnedFd) -> UnixListener {
        UnixListener {
            acceptor: Acceptor::new(fd),
        }
    }

    /// Waits for a connection. Returns it with the address of the peer, which mostly has none.
    ///
    /// Otherwise as [`TcpListener::accept`](crate::net::TcpListener::accept).
    ///
    /// # Errors
    ///
    /// What the kernel reports about the listener, or that the system is out of descriptors or memory.
    ///
    /// # Cancel safety
    ///
    /// Safe: no connection is lost with a dropped accept.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let stream = UnixStream::from_fd(self.acceptor.accept().await?);
        let peer = stream.peer_addr()?;
        Ok((stream, peer))
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

impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.acceptor.socket().as_fd()
    }
}

impl fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixListener")
            .field("local_addr", &self.local_addr().ok())
            .finish()
    }
}

/// Opens a socket that listens at an address.
pub(super) fn listen(kind: Type, address: impl ToUnixAddr) -> io::Result<OwnedFd> {
    let socket = bound(kind, address)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Opens a socket that has an address.
pub(super) fn bound(kind: Type, address: impl ToUnixAddr) -> io::Result<NewSocket> {
    let address = address.to_unix_addr()?;
    let raw = to_raw(&address)?;
    let socket = NewSocket::new(Domain::UNIX, kind, None)?;
    match socket.bind(&raw) {
        Ok(()) => Ok(socket),
        Err(cause) => Err(UnixSocketError::error(Attempt::Bind, address, cause)),
    }
}
