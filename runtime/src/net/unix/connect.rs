//! Connecting Unix sockets.

use std::io;
use std::os::fd::OwnedFd;

use socket2::{Domain, Socket as NewSocket, Type};

use super::address::{ToUnixAddr, to_raw};
use super::error::{Attempt, UnixSocketError};
use crate::net::connect::connected;

/// Connects a socket of that kind, and waits while the backlog of the listener is full: each backend sees to that.
pub(super) async fn connect(kind: Type, address: impl ToUnixAddr) -> io::Result<OwnedFd> {
    let address = address.to_unix_addr()?;
    let raw = to_raw(&address)?;
    let socket = NewSocket::new(Domain::UNIX, kind, None)?;
    let outcome = connected(socket.into(), raw).await;
    outcome.map_err(|cause| UnixSocketError::error(Attempt::Connect, address, cause))
}
