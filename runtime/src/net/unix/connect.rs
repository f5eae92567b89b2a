//! Connecting Unix sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use socket2::{Domain, Socket as NewSocket, Type};

use super::address::{ToUnixAddr, to_raw};
use crate::net::connect::connected;
use crate::time::sleep;

const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Connects a socket of that kind, and waits while the backlog of the listener is full.
///
/// io_uring waits by itself. Without it the kernel refuses for the moment, and has no way to tell when there is room:
/// then this asks again, each time after a longer pause.
pub(super) async fn connect(kind: Type, address: impl ToUnixAddr) -> io::Result<OwnedFd> {
    let address = to_raw(&address.to_unix_addr()?)?;
    let mut pause = PAUSE_MIN;
    loop {
        let socket = NewSocket::new(Domain::UNIX, kind, None)?;
        match connected(socket.into(), address.clone()).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(pause).await,
            result => return result,
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
