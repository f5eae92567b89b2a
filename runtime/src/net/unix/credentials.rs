//! Who is at the other end.

use std::io;
use std::os::fd::AsFd;

use crate::sys;

/// The process at the other end of a Unix socket, as it was when it connected.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::UnixStream;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let (one, _other) = UnixStream::pair()?;
///     assert_eq!(one.peer_cred()?.pid(), Some(std::process::id()));
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCred {
    uid: u32,
    gid: u32,
    pid: Option<u32>,
}

impl PeerCred {
    pub(super) fn of(socket: &impl AsFd) -> io::Result<PeerCred> {
        let found = sys::peer_credentials(socket.as_fd())?;
        Ok(PeerCred {
            uid: found.uid,
            gid: found.gid,
            pid: u32::try_from(found.pid).ok().filter(|&pid| pid != 0),
        })
    }

    /// The user.
    #[must_use]
    pub fn uid(self) -> u32 {
        self.uid
    }

    /// The group.
    #[must_use]
    pub fn gid(self) -> u32 {
        self.gid
    }

    /// The process, if it can be seen from this one.
    #[must_use]
    pub fn pid(self) -> Option<u32> {
        self.pid
    }
}
