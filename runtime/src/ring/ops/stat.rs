//! Asking about a file.
#![expect(
    unsafe_code,
    reason = "hands out the addresses of its path and of the room for the answer"
)]

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;

use crate::ring::backend::EntryKind;
use crate::ring::file::FileRef;
use crate::ring::op::{Operation, Outcome};

/// Which file is asked about.
#[derive(Debug)]
pub(crate) enum StatTarget {
    /// The file a path leads to.
    Path(CString),
    /// What a path names, even if that is a symbolic link.
    Name(CString),
    /// An open file.
    File(FileRef),
}

/// Asks about a file.
pub(crate) struct Stat {
    target: StatTarget,
    stat: libc::statx,
}

impl Stat {
    pub(crate) fn new(target: StatTarget) -> Stat {
        Stat {
            target,
            // SAFETY: a structure of numbers, for which all zeroes is a value.
            stat: unsafe { mem::zeroed() },
        }
    }
}

// SAFETY: the room for the answer lies in the payload itself, the path is a string on the heap that it owns or a
// constant; nobody touches either before the final completion.
unsafe impl Operation for Stat {
    /// The target comes back, for the text of an error.
    type Output = (io::Result<libc::statx>, StatTarget);

    const NAME: &'static str = "stat";

    fn entry(&mut self) -> EntryKind {
        let (dir, path, flags) = match &self.target {
            StatTarget::Path(path) => (libc::AT_FDCWD, path.as_ptr(), 0),
            StatTarget::Name(path) => (libc::AT_FDCWD, path.as_ptr(), libc::AT_SYMLINK_NOFOLLOW),
            StatTarget::File(file) => (file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH),
        };
        EntryKind::Stat {
            dir,
            path,
            flags,
            mask: libc::STATX_BASIC_STATS | libc::STATX_BTIME | libc::STATX_DIOALIGN,
            stat: &raw mut self.stat,
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(Outcome::into_result);
        (result.map(|_| self.stat), self.target)
    }

    /// It only looked.
    fn orphan(self, _outcome: Outcome) {}
}
