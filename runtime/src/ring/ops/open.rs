//! Opening a file.
#![expect(
    unsafe_code,
    reason = "hands out the address of its path, and owns the descriptor it is given"
)]

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::ring::backend::EntryKind;
use crate::ring::file::close_unattended;
use crate::ring::op::{Operation, Outcome};

/// Opens a file.
pub(crate) struct Open {
    path: CString,
    flags: i32,
    mode: libc::mode_t,
}

impl Open {
    pub(crate) fn new(path: CString, flags: i32, mode: libc::mode_t) -> Open {
        Open { path, flags, mode }
    }
}

/// Takes ownership of the descriptor in a successful outcome.
fn opened(outcome: Outcome) -> io::Result<OwnedFd> {
    outcome.into_result()?;
    // SAFETY: a successful open returns a new descriptor, which is taken once: an operation either completes or is
    // orphaned.
    Ok(unsafe { OwnedFd::from_raw_fd(outcome.result) })
}

// SAFETY: the address is that of a string on the heap, owned by the payload and never written to.
unsafe impl Operation for Open {
    /// The path comes back, for the text of an error.
    type Output = (io::Result<OwnedFd>, CString);

    const NAME: &'static str = "open";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Open {
            path: self.path.as_ptr(),
            flags: self.flags | libc::O_CLOEXEC,
            mode: self.mode,
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        (outcome.and_then(opened), self.path)
    }

    /// Nobody wants the file any more.
    fn orphan(self, outcome: Outcome) {
        if let Ok(fd) = opened(outcome) {
            close_unattended(fd);
        }
    }
}
