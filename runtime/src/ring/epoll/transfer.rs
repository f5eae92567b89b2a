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
use std::ptr;

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
    let mut single = NO_PIECE;
    Transfer::of(kind, &mut single).attempt(work)
}

/// Does it, for as long as that takes: it is from or to a file that is always ready, as epoll sees it.
pub(super) fn run(kind: EntryKind) -> Result<u32, Errno> {
    let mut single = NO_PIECE;
    Transfer::of(kind, &mut single).run()
}

const NO_PIECE: iovec = iovec {
    iov_base: ptr::null_mut(),
    iov_len: 0,
};

/// The offset of a transfer that goes on where the file stands.
const HERE: u64 = u64::MAX;

/// A read or write of a file that is no socket.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    fd: RawFd,
    way: Way,
    /// Invariant: the list of the entry, or the one piece its maker keeps in place for as long as this lives.
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
    /// The transfer an entry describes. `single` is where its list is if the entry has none, and stays in place meanwhile.
    fn of(kind: EntryKind, single: &mut iovec) -> Transfer {
        let mut one = |ptr: *mut u8, len: u32| {
            *single = iovec {
                iov_base: ptr.cast(),
                iov_len: len as usize,
            };
            (&raw const *single, 1)
        };
        let (fd, way, (pieces, count), offset) = match kind {
            EntryKind::Read { fd, ptr, len } => (fd, Way::In, one(ptr, len), HERE),
            EntryKind::Write { fd, ptr, len } => (fd, Way::Out, one(ptr.cast_mut(), len), HERE),
            EntryKind::ReadAt {
                fd,
                ptr,
                len,
                offset,
            } => (fd, Way::In, one(ptr, len), offset),
            EntryKind::WriteAt {
                fd,
                ptr,
                len,
                offset,
            } => (fd, Way::Out, one(ptr.cast_mut(), len), offset),
            EntryKind::ReadVectoredAt {
                fd,
                pieces,
                piece_count,
                offset,
            } => (fd, Way::In, (pieces, piece_count), offset),
            EntryKind::WriteVectoredAt {
                fd,
                pieces,
                piece_count,
                offset,
            } => (fd, Way::Out, (pieces, piece_count), offset),
            other => unreachable!("{other:?} is no transfer of a file"),
        };
        Transfer {
            fd,
            way,
            pieces,
            count: count.cast_signed(),
            offset: offset.cast_signed(),
        }
    }

    fn has_position(self) -> bool {
        self.offset.cast_unsigned() != HERE
    }

    fn attempt(mut self, work: &mut Work) -> Attempted {
        let is_first = !std::mem::replace(&mut work.is_begun, true);
        if is_first && self.has_position() && is_always_ready(self.fd) {
            return Attempted::Blocks;
        }
        if work.mode == Mode::ByFlag {
            match self.by_flag() {
                Err(Errno(libc::ESPIPE)) if self.has_position() => {
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
        or_blocked(self.here())
    }

    fn run(self) -> Result<u32, Errno> {
        if !self.has_position() {
            return self.here();
        }
        let Transfer {
            fd,
            pieces,
            count,
            offset,
            ..
        } = self;
        // SAFETY: the list is in place by its invariant; the record keeps what it names valid until the final completion,
        // and nobody else uses that.
        call(|| unsafe {
            match self.way {
                Way::In => libc::preadv(fd, pieces, count, offset),
                Way::Out => libc::pwritev(fd, pieces, count, offset),
            }
        })
    }

    /// Goes on where the file stands.
    fn here(self) -> Result<u32, Errno> {
        // SAFETY: the list is in place by its invariant; the record keeps what it names valid until the final completion,
        // and nobody else uses that.
        call(|| unsafe {
            match self.way {
                Way::In => libc::readv(self.fd, self.pieces, self.count),
                Way::Out => libc::writev(self.fd, self.pieces, self.count),
            }
        })
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
        // SAFETY: the list is in place by its invariant; the record keeps what it names valid until the final completion,
        // and nobody else uses that.
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
