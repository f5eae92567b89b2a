//! Reads and writes of files that are no sockets.
//!
//! A pipe, a terminal or an eventfd has no positions and can be waited for. A regular file has positions, is always
//! ready, and blocks all the same. Which of them it is the entry does not say, so it is found out here.
#![expect(
    unsafe_code,
    reason = "makes the system calls that the entries describe, with their addresses"
)]

use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use libc::iovec;

use super::call::{Errno, call};
use super::work::{Attempted, Work, finished, or_blocked, set_nonblocking};
use crate::ring::backend::EntryKind;

/// How a transfer from or to a file that is no socket is kept from blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// By a flag of the call, which changes nothing about the file.
    ByFlag,
    /// By a flag of the file, where it does not know that of the call.
    ByFile,
}

/// Tries it now.
pub(super) fn attempt(work: &mut Work, kind: EntryKind) -> Attempted {
    match kind {
        EntryKind::Read { fd, ptr, len } => {
            Transfer::at(fd, Way::In, &piece(ptr, len), 1, HERE).attempt(work)
        }
        EntryKind::Write { fd, ptr, len } => {
            Transfer::at(fd, Way::Out, &piece(ptr.cast_mut(), len), 1, HERE).attempt(work)
        }
        EntryKind::ReadAt {
            fd,
            ptr,
            len,
            offset,
        } => Transfer::at(fd, Way::In, &piece(ptr, len), 1, offset).attempt(work),
        EntryKind::WriteAt {
            fd,
            ptr,
            len,
            offset,
        } => {
            let piece = piece(ptr.cast_mut(), len);
            Transfer::at(fd, Way::Out, &raw const piece, 1, offset).attempt(work)
        }
        EntryKind::ReadVectoredAt {
            fd,
            pieces,
            piece_count,
            offset,
        } => Transfer::at(fd, Way::In, pieces, piece_count, offset).attempt(work),
        EntryKind::WriteVectoredAt {
            fd,
            pieces,
            piece_count,
            offset,
        } => Transfer::at(fd, Way::Out, pieces, piece_count, offset).attempt(work),
        other => unreachable!("{other:?} is not tried"),
    }
}

fn piece(ptr: *mut u8, len: u32) -> iovec {
    iovec {
        iov_base: ptr.cast(),
        iov_len: len as usize,
    }
}

/// The offset of a transfer that goes on where the file stands.
const HERE: u64 = u64::MAX;

/// A read or write of a file that is no socket.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    fd: RawFd,
    way: Way,
    pieces: *const iovec,
    count: i32,
    offset: libc::off_t,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    In,
    Out,
}

impl Transfer {
    fn at(fd: RawFd, way: Way, pieces: *const iovec, count: u32, offset: u64) -> Transfer {
        Transfer {
            fd,
            way,
            pieces,
            count: count.cast_signed(),
            offset: offset.cast_signed(),
        }
    }

    fn attempt(mut self, work: &mut Work) -> Attempted {
        let is_first = !std::mem::replace(&mut work.is_begun, true);
        let has_position = self.offset.cast_unsigned() != HERE;
        if is_first && has_position && is_always_ready(self.fd) {
            return Attempted::Blocks;
        }
        if work.mode == Mode::ByFlag {
            match self.by_flag() {
                Err(Errno(libc::ESPIPE)) if has_position => {
                    // No positions in this file: io_uring ignores them.
                    self.offset = HERE.cast_signed();
                    return self.attempt(work);
                }
                // The file does not know that flag, or the system does not.
                Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) => {}
                other => return or_blocked(other),
            }
            if is_always_ready(self.fd) {
                return Attempted::Blocks;
            }
            work.mode = Mode::ByFile;
            if let Err(errno) = set_nonblocking(self.fd, true) {
                return finished(Err(errno));
            }
        }
        // SAFETY: the record keeps the list and its pieces valid until the final completion, and nobody else uses them.
        or_blocked(call(|| unsafe {
            match self.way {
                Way::In => libc::readv(self.fd, self.pieces, self.count),
                Way::Out => libc::writev(self.fd, self.pieces, self.count),
            }
        }))
    }

    /// Without waiting, and without a change to the descriptor.
    #[cfg(target_os = "linux")]
    fn by_flag(self) -> Result<u32, Errno> {
        let Transfer {
            fd,
            pieces,
            count,
            offset,
            ..
        } = self;
        // SAFETY: as above.
        call(|| unsafe {
            match self.way {
                Way::In => libc::preadv2(fd, pieces, count, offset, libc::RWF_NOWAIT),
                Way::Out => libc::pwritev2(fd, pieces, count, offset, libc::RWF_NOWAIT),
            }
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn by_flag(self) -> Result<u32, Errno> {
        Err(Errno(libc::EOPNOTSUPP))
    }
}

/// Whether readiness says nothing about a file: regular files, directories, and devices of blocks. Some of them can be
/// watched all the same.
fn is_always_ready(fd: RawFd) -> bool {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: room for one result.
    if call(|| unsafe { libc::fstat(fd, stat.as_mut_ptr()) as isize }).is_err() {
        // Not open: any attempt says so, and does not block.
        return false;
    }
    // SAFETY: filled by the call, which succeeded.
    let mode = unsafe { stat.assume_init() }.st_mode;
    matches!(
        mode & libc::S_IFMT,
        libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK
    )
}
