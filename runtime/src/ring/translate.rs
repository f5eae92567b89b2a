//! Entries in the words of io_uring.

use io_uring::opcode;
use io_uring::squeue;
use io_uring::types::{Fd, FsyncFlags};

use super::backend::{Attempt, EntryKind, Extent, SyncScope};

/// `IORING_RECVSEND_POLL_FIRST`: the crate has no name for it.
const POLL_FIRST: u16 = 1;

/// Whether the kernel knows how to wait for data before it tries a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollFirst {
    Known,
    Unknown,
}

/// Writes an entry down as the ring takes it, without its token.
pub(super) fn translate(kind: EntryKind, poll_first: PollFirst) -> squeue::Entry {
    match kind {
        EntryKind::Nop => opcode::Nop::new().build(),
        EntryKind::Accept {
            fd,
            address,
            address_len,
        } => opcode::Accept::new(Fd(fd), address, address_len)
            .flags(libc::SOCK_CLOEXEC)
            .build(),
        EntryKind::Connect {
            fd,
            address,
            address_len,
        } => opcode::Connect::new(Fd(fd), address, address_len).build(),
        EntryKind::Recv {
            fd,
            ptr,
            len,
            attempt,
        } => {
            let wait_first = attempt == Attempt::WhenReadable && poll_first == PollFirst::Known;
            opcode::Recv::new(Fd(fd), ptr, len)
                .ioprio(if wait_first { POLL_FIRST } else { 0 })
                .build()
        }
        EntryKind::Send {
            fd,
            ptr,
            len,
            extent,
        } => {
            let extent = match extent {
                Extent::Some => 0,
                Extent::All => libc::MSG_WAITALL,
            };
            opcode::Send::new(Fd(fd), ptr, len)
                .flags(libc::MSG_NOSIGNAL | extent)
                .build()
        }
        EntryKind::SendMessage { fd, message } => opcode::SendMsg::new(Fd(fd), message)
            .flags(libc::MSG_NOSIGNAL.cast_unsigned())
            .build(),
        EntryKind::ReceiveMessage { fd, message, flags } => opcode::RecvMsg::new(Fd(fd), message)
            .flags(flags.cast_unsigned())
            .build(),
        EntryKind::Shutdown { fd, how } => opcode::Shutdown::new(Fd(fd), how).build(),
        EntryKind::Read { fd, ptr, len } => opcode::Read::new(Fd(fd), ptr, len).build(),
        EntryKind::PollReadable { fd } => {
            let events = u32::from(libc::POLLIN.cast_unsigned());
            opcode::PollAdd::new(Fd(fd), events).build()
        }
        EntryKind::Cancel { target } => opcode::AsyncCancel::new(target).build(),
        EntryKind::ReadAt { .. }
        | EntryKind::WriteAt { .. }
        | EntryKind::ReadVectoredAt { .. }
        | EntryKind::WriteVectoredAt { .. }
        | EntryKind::Close { .. }
        | EntryKind::Sync { .. }
        | EntryKind::Allocate { .. }
        | EntryKind::SetLen { .. } => translate_file(kind),
        EntryKind::Open { .. }
        | EntryKind::Stat { .. }
        | EntryKind::Rename { .. }
        | EntryKind::HardLink { .. }
        | EntryKind::Symlink { .. }
        | EntryKind::Unlink { .. }
        | EntryKind::CreateDir { .. } => translate_path(kind),
    }
}

/// The part of [`translate`] that deals in open files.
fn translate_file(kind: EntryKind) -> squeue::Entry {
    match kind {
        EntryKind::ReadAt {
            fd,
            ptr,
            len,
            offset,
        } => opcode::Read::new(Fd(fd), ptr, len).offset(offset).build(),
        EntryKind::WriteAt {
            fd,
            ptr,
            len,
            offset,
        } => opcode::Write::new(Fd(fd), ptr, len).offset(offset).build(),
        EntryKind::ReadVectoredAt {
            fd,
            pieces,
            piece_count,
            offset,
        } => opcode::Readv::new(Fd(fd), pieces, piece_count)
            .offset(offset)
            .build(),
        EntryKind::WriteVectoredAt {
            fd,
            pieces,
            piece_count,
            offset,
        } => opcode::Writev::new(Fd(fd), pieces, piece_count)
            .offset(offset)
            .build(),
        EntryKind::Close { fd } => opcode::Close::new(Fd(fd))
            .build()
            // The last close of a file may have to wait for its device. A helper thread of the kernel can.
            .flags(squeue::Flags::ASYNC),
        EntryKind::Sync { fd, scope } => opcode::Fsync::new(Fd(fd))
            .flags(match scope {
                SyncScope::All => FsyncFlags::empty(),
                SyncScope::Data => FsyncFlags::DATASYNC,
            })
            .build(),
        EntryKind::Allocate {
            fd,
            mode,
            offset,
            len,
        } => opcode::Fallocate::new(Fd(fd), len)
            .offset(offset)
            .mode(mode)
            .build(),
        EntryKind::SetLen { fd, len } => opcode::Ftruncate::new(Fd(fd), len).build(),
        other => unreachable!("{other:?} is about no open file"),
    }
}

/// The part of [`translate`] that deals in paths.
fn translate_path(kind: EntryKind) -> squeue::Entry {
    let here = Fd(libc::AT_FDCWD);
    match kind {
        EntryKind::Open { path, flags, mode } => opcode::OpenAt::new(here, path)
            .flags(flags)
            .mode(mode)
            .build(),
        EntryKind::Stat {
            dir,
            path,
            flags,
            mask,
            stat,
        } => opcode::Statx::new(Fd(dir), path, stat.cast())
            .flags(flags)
            .mask(mask)
            .build(),
        EntryKind::Rename { from, to } => opcode::RenameAt::new(here, from, here, to).build(),
        EntryKind::HardLink { original, link } => {
            opcode::LinkAt::new(here, original, here, link).build()
        }
        EntryKind::Symlink { target, link } => opcode::SymlinkAt::new(here, target, link).build(),
        EntryKind::Unlink { path, flags } => opcode::UnlinkAt::new(here, path).flags(flags).build(),
        EntryKind::CreateDir { path, mode } => opcode::MkDirAt::new(here, path).mode(mode).build(),
        other => unreachable!("{other:?} has no path"),
    }
}
