//! Accepting connections.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use socket2::{Domain, Protocol, Socket as NewSocket, Type};

use super::acceptor::Acceptor;
use super::address::{ToSocketAddr, local_addr};
use super::tcp_stream::TcpStream;

/// Connections the kernel keeps ready for an accept. More are refused or retried by the peer.
const BACKLOG: i32 = 1024;

/// A TCP socket that listens for connections.
///
/// Dropping it closes it, at the end of the turn when a connection was waited for. Connections that were not accepted
/// are closed with it.
///
/// # Shard affinity
///
/// Belongs to the shard that made it. [`TcpSocket`](crate::net::TcpSocket) sets more than `bind` does. To serve one port from every shard, bind a listener on each with
/// [`bind_reuse_port`](Self::bind_reuse_port); the kernel spreads the connections by a hash of their addresses.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::net::{TcpListener, TcpStream};
/// use greenroom_runtime::{Builder, spawn};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let client = spawn(TcpStream::connect(listener.local_addr()?));
///     let (_stream, peer) = listener.accept().await?;
///     assert_eq!(client.await.unwrap()?.local_addr()?, peer);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TcpListener {
    acceptor: Acceptor,
}

impl TcpListener {
    /// Listens at an address that nobody else listens at.
    ///
    /// Port 0 takes a free port, which [`local_addr`](Self::local_addr) tells. A port whose last connections are still
    /// winding down is taken over (`SO_REUSEADDR`).
    ///
    /// # Errors
    ///
    /// If the address is no literal one, is in use or not of this host, or the system is out of descriptors.
    pub fn bind(address: impl ToSocketAddr) -> io::Result<TcpListener> {
        TcpListener::listen(address.to_socket_addr()?, Sharing::Alone)
    }

    /// Listens at an address that other listeners of the same user may share (`SO_REUSEPORT`).
    ///
    /// All of them have to be bound this way. The kernel gives each connection to one of them. When one is dropped, the
    /// connections that wait in its backlog are reset.
    ///
    /// # Errors
    ///
    /// As for [`bind`](Self::bind).
    pub fn bind_reuse_port(address: impl ToSocketAddr) -> io::Result<TcpListener> {
        TcpListener::listen(address.to_socket_addr()?, Sharing::ReusePort)
    }

    fn listen(address: SocketAddr, sharing: Sharing) -> io::Result<TcpListener> {
        let socket = NewSocket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_reuse_address(true)?;
        if sharing == Sharing::ReusePort {
            socket.set_reuse_port(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(TcpListener::from_fd(socket.into()))
    }

    pub(super) fn from_fd(fd: OwnedFd) -> TcpListener {
        TcpListener {
            acceptor: Acceptor::new(fd),
        }
    }

    /// Takes over a listener of the standard library.
    ///
    /// # Errors
    ///
    /// If it cannot be put into blocking mode. The shard never blocks on it, but older kernels would not let an
    /// operation wait on a socket in the other mode.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<TcpListener> {
        listener.set_nonblocking(false)?;
        Ok(TcpListener::from_fd(listener.into()))
    }

    /// Waits for a connection. Returns it with the address of the peer.
    ///
    /// The first accept asks the kernel for connections, from then on and until the listener is dropped. Those that come
    /// while nobody accepts, up to 64, are handed to the next accepts; more wait in the backlog. Several tasks may
    /// accept from one listener; each connection goes to one of them.
    ///
    /// # Errors
    ///
    /// What the kernel reports about the listener, or that the system is out of descriptors or memory. A connection that
    /// ended before it was accepted is passed over. After an error the next accept waits before it tries again, for 5 ms
    /// at first, doubled with each error in a row up to a second: a loop that logs and goes on does not spin.
    ///
    /// # Cancel safety
    ///
    /// Safe: no connection is lost with a dropped accept.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let stream = TcpStream::from_fd(self.acceptor.accept().await?);
            match stream.peer_addr() {
                Ok(peer) => return Ok((stream, peer)),
                // The peer reset it already.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Closes the listener. When the future is done, its address is free again.
    ///
    /// Dropping the listener closes it as well, but not before the accept that it left with the kernel has ended, some turns later.
    /// Connections that nobody has accepted are closed. Whoever forgets the future of an accept (`mem::forget`) instead of dropping
    /// it makes this wait for ever.
    ///
    /// # Cancel safety
    ///
    /// Safe: the listener is closed even if the future is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use greenroom_runtime::Builder;
    /// use greenroom_runtime::net::TcpListener;
    ///
    /// let runtime = Builder::new().shards(1).start()?;
    /// runtime.run_on(0, || async {
    ///     let listener = TcpListener::bind("127.0.0.1:0")?;
    ///     let address = listener.local_addr()?;
    ///     listener.close().await;
    ///     TcpListener::bind(address).map(drop)
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn close(self) {
        self.acceptor.close().await;
    }

    /// Returns the address it listens at.
    ///
    /// # Errors
    ///
    /// What the kernel reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_addr(&self.acceptor.socket())
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.acceptor.socket().as_fd()
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener")
            .field("local_addr", &self.local_addr().ok())
            .finish()
    }
}

/// Whether others may listen at the same address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Alone,
    ReusePort,
}
