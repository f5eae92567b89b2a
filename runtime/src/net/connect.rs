//! Connecting: from a name to the first address that answers.
//!
//! A host may have several addresses, and some of them may lead nowhere. They are tried in a race (RFC 8305): in the
//! order the system gives, but alternating between the address families, each one when the one before has failed or
//! has not answered for a while. The first that answers wins. The others are dropped, which cancels them and closes
//! their sockets.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket as NewSocket, Type};

use super::address::ToSocketAddr;
use super::race::{interleave, race};
use super::resolve::{Targets, ToTargets};
use super::tcp_stream::TcpStream;
use crate::ring::Op;
use crate::ring::ops::connect::Connect;
use crate::ring::socket::{Kept, Socket};
use crate::time::{sleep, timeout};

/// How long one address may be silent before the next is tried as well: what RFC 8305 recommends.
const STAGGER: Duration = Duration::from_millis(250);

/// How to connect, where [`TcpStream::connect`] leaves something to be wished for.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::{Connector, TcpListener};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let stream = Connector::new()
///         .bind("127.0.0.2:0")?
///         .timeout(Duration::from_secs(5))
///         .connect(listener.local_addr()?)
///         .await?;
///     assert_eq!(stream.local_addr()?.ip().to_string(), "127.0.0.2");
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Connector {
    local: Option<SocketAddr>,
    timeout: Option<Duration>,
    stagger: Duration,
}

impl Default for Connector {
    fn default() -> Connector {
        Connector::new()
    }
}

impl Connector {
    /// Connects from any address of this host, without a limit, and with 250 ms between addresses.
    #[must_use]
    pub fn new() -> Connector {
        Connector {
            local: None,
            timeout: None,
            stagger: STAGGER,
        }
    }

    /// Connects from this address. Port 0 takes a free port.
    ///
    /// Addresses of the other family are then not tried.
    ///
    /// # Errors
    ///
    /// If the address is no literal one. Whether it can be used is found out by [`connect`](Self::connect).
    pub fn bind(mut self, local: impl ToSocketAddr) -> io::Result<Connector> {
        self.local = Some(local.to_socket_addr()?);
        Ok(self)
    }

    /// Limits the time from the call to the connection, the look-up included.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Connector {
        self.timeout = Some(limit);
        self
    }

    /// Sets how long an address may be silent before the next one is tried as well.
    #[must_use]
    pub fn stagger(mut self, delay: Duration) -> Connector {
        self.stagger = delay;
        self
    }

    /// Connects to a host.
    ///
    /// # Errors
    ///
    /// As for [`TcpStream::connect`]; and if the time is over ([`TimedOut`](io::ErrorKind::TimedOut)), or the local
    /// address cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped connect closes its sockets, connected or not.
    pub async fn connect(&self, host: impl ToTargets) -> io::Result<TcpStream> {
        let targets = host.to_targets()?;
        let Some(limit) = self.timeout else {
            return self.connect_to(&targets).await;
        };
        match timeout(limit, self.connect_to(&targets)).await {
            Ok(result) => result,
            Err(elapsed) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                ConnectError {
                    host: targets.to_string(),
                    attempts: vec![],
                    limit: Some(elapsed.limit()),
                },
            )),
        }
    }

    async fn connect_to(&self, targets: &Targets) -> io::Result<TcpStream> {
        let addresses = targets.resolve().await?;
        let usable = |address: &&SocketAddr| {
            self.local
                .is_none_or(|local| local.is_ipv4() == address.is_ipv4())
        };
        let addresses: Vec<SocketAddr> = addresses.iter().filter(usable).copied().collect();
        let attempts = match *addresses {
            // The race has a price: a box for each runner.
            [address] => match self.attempt(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => vec![(address, error)],
            },
            _ => {
                let attempt = |address| self.attempt(address);
                let delay = || sleep(self.stagger);
                match race(interleave(&addresses), attempt, delay).await {
                    Ok(stream) => return Ok(stream),
                    Err(attempts) => attempts,
                }
            }
        };
        Err(ConnectError::error(targets, attempts))
    }

    async fn attempt(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = NewSocket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        if let Some(local) = self.local {
            socket.bind(&local.into())?;
        }
        let fd = connected(socket.into(), address.into()).await?;
        Ok(TcpStream::from_fd(fd))
    }
}

/// A socket that is not connected yet brings nothing home.
impl Kept for () {
    fn holds_something(&self) -> bool {
        false
    }
}

/// Connects a socket. It is closed if that fails, or if nobody waits for it.
pub(super) async fn connected(fd: OwnedFd, address: SockAddr) -> io::Result<OwnedFd> {
    let socket = Socket::<()>::new(fd);
    let lane = socket.take_outbound().await;
    Op::new(Connect::new(lane, address)).await?;
    Socket::into_fd(socket).map_err(|_| io::Error::other("the socket is still in use"))
}

/// A host that could not be connected to. Part of an [`io::Error`].
///
/// The kind of the error is that of the last attempt.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::{ConnectError, TcpStream};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let error = TcpStream::connect("127.0.0.1:1").await.unwrap_err();
///     assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
///     let error = error.get_ref().unwrap().downcast_ref::<ConnectError>().unwrap();
///     assert_eq!(error.host(), "127.0.0.1:1");
///     assert_eq!(error.attempts().len(), 1);
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Debug)]
pub struct ConnectError {
    host: String,
    attempts: Vec<(SocketAddr, io::Error)>,
    limit: Option<Duration>,
}

impl ConnectError {
    fn error(targets: &Targets, attempts: Vec<(SocketAddr, io::Error)>) -> io::Error {
        let kind = attempts
            .last()
            .map_or(io::ErrorKind::InvalidInput, |(_, error)| error.kind());
        io::Error::new(
            kind,
            ConnectError {
                host: targets.to_string(),
                attempts,
                limit: None,
            },
        )
    }

    /// What was to be connected to, with its port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What was tried, and how it failed, in the order of the failures. Empty if the time was over.
    #[must_use]
    pub fn attempts(&self) -> &[(SocketAddr, io::Error)] {
        &self.attempts
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot connect to `{}`", self.host)?;
        if let Some(limit) = self.limit {
            return write!(f, " within {} ms", limit.as_millis());
        }
        if self.attempts.is_empty() {
            return f.write_str(": it has no address of the family of the local one");
        }
        for (number, (address, error)) in self.attempts.iter().enumerate() {
            let separator = if number == 0 { ": " } else { "; " };
            write!(f, "{separator}{address}: {error}")?;
        }
        Ok(())
    }
}

impl Error for ConnectError {}
