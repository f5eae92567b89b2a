//! The system calls of file operations, which may block. Results are those of io_uring.
#![expect(
    unsafe_code,
    reason = "makes the system calls that the entries describe, with their addresses"
)]

use libc::AT_FDCWD;

use super::call::{Errno, call};
use super::transfer;
use crate::ring::backend::{EntryKind, SyncScope};

/// Whether an operation goes to the pool without a look at its descriptor: it always may block, and readiness says
/// nothing about it.
pub(super) fn always_blocks(kind: EntryKind) -> bool {
    match kind {
        EntryKind::Open { .. }
        | EntryKind::Close { .. }
        | EntryKind::Sync { .. }
        | EntryKind::Allocate { .. }
        | EntryKind::SetLen { .. }
        | EntryKind::Stat { .. }
        | EntryKind::Rename { .. }
        | EntryKind::HardLink { .. }
        | EntryKind::Symlink { .. }
        | EntryKind::Unlink { .. }
        | EntryKind::CreateDir { .. } => true,
        EntryKind::Nop
        | EntryKind::AcceptMulti { .. }
        | EntryKind::Connect { .. }
        | EntryKind::Recv { .. }
        | EntryKind::RecvMulti { .. }
        | EntryKind::ReceiveMessage { .. }
        | EntryKind::Send { .. }
        | EntryKind::SendZeroCopy { .. }
        | EntryKind::SendMessage { .. }
        | EntryKind::Shutdown { .. }
        | EntryKind::Read { .. }
        | EntryKind::Write { .. }
        | EntryKind::PollReadable { .. }
        | EntryKind::PollWritable { .. }
        | EntryKind::ReadAt { .. }
        | EntryKind::WriteAt { .. }
        | EntryKind::ReadVectoredAt { .. }
        | EntryKind::WriteVectoredAt { .. }
        | EntryKind::Cancel { .. } => false,
    }
}

/// Does what the entry says, for as long as that takes.
///
/// Its addresses have to be valid, which the record they come from sees to; the caller is the one that may use them.
pub(super) fn run(kind: EntryKind) -> i32 {
    let done = if always_blocks(kind) {
        run_call(kind)
    } else {
        transfer::run(kind)
    };
    match done {
        Ok(value) => i32::try_from(value).expect("lengths are within what one call takes"),
        Err(Errno(errno)) => -errno,
    }
}

fn run_call(kind: EntryKind) -> Result<u32, Errno> {
    // SAFETY: paths are null-terminated and the room for a `statx` has its size: both stay valid and ours until the final
    // completion of the entry, which follows this call. The other arguments are numbers.
    call(|| unsafe {
        match kind {
            EntryKind::Open { path, flags, mode } => libc::open(path, flags, mode) as isize,
            EntryKind::Close { fd } => closed(libc::close(fd)),
            EntryKind::Sync {
                fd,
                scope: SyncScope::All,
            } => libc::fsync(fd) as isize,
            EntryKind::Sync {
                fd,
                scope: SyncScope::Data,
            } => libc::fdatasync(fd) as isize,
            EntryKind::Allocate {
                fd,
                mode,
                offset,
                len,
            } => libc::fallocate(fd, mode, offset.cast_signed(), len.cast_signed()) as isize,
            EntryKind::SetLen { fd, len } => libc::ftruncate(fd, len.cast_signed()) as isize,
            EntryKind::Stat {
                dir,
                path,
                flags,
                mask,
                stat,
            } => libc::statx(dir, path, flags, mask, stat) as isize,
            EntryKind::Rename { from, to } => libc::rename(from, to) as isize,
            EntryKind::HardLink { original, link } => {
                libc::linkat(AT_FDCWD, original, AT_FDCWD, link, 0) as isize
            }
            EntryKind::Symlink { target, link } => libc::symlink(target, link) as isize,
            EntryKind::Unlink { path, flags } => libc::unlinkat(AT_FDCWD, path, flags) as isize,
            EntryKind::CreateDir { path, mode } => libc::mkdir(path, mode) as isize,
            other => unreachable!("{other:?} is no call on a file"),
        }
    })
}

/// A close is never tried again: the descriptor is gone, whatever it reports.
fn closed(result: i32) -> isize {
    let was_interrupted =
        result < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
    if was_interrupted { 0 } else { result as isize }
}
