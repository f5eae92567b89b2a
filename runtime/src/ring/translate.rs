//! Entries in the words of io_uring.

use std::os::fd::RawFd;
use std::ptr;

use io_uring::opcode;
use io_uring::squeue;
use io_uring::types::{Fd, FsyncFlags};

use super::backend::{Attempt, EntryKind, Extent, SyncScope};

/// `IORING_RECVSEND_POLL_FIRST`: the crate has no name for it.
const POLL_FIRST: u16 = 1;

/// The one group of provided buffers of each ring.
pub(super) const POOL_GROUP: u16 = 0;

/// What this kernel can do besides what everything relies on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abilities {
    /// Wait for data before a receive (5.19).
    pub(super) poll_first: bool,
    /// Accept until told to stop (5.19).
    pub(super) repeated_accept: bool,
    /// Receive until told to stop (6.0).
    pub(super) repeated_recv: bool,
    /// Send without copying (6.0).
    pub(super) zero_copy: bool,
}

/// Writes an entry down as the ring takes it, without its token.
pub(super) fn translate(kind: EntryKind, abilities: Abilities) -> squeue::Entry {
    match kind {
        EntryKind::Nop => opcode::Nop::new().build(),
        EntryKind::AcceptMulti { fd } if abilities.repeated_accept => {
            opcode::AcceptMulti::new(Fd(fd))
                .flags(libc::SOCK_CLOEXEC)
                .build()
        }
        EntryKind::AcceptMulti { fd } => {
            opcode::Accept::new(Fd(fd), ptr::null_mut(), ptr::null_mut())
                .flags(libc::SOCK_CLOEXEC)
                .build()
        }
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
            let wait_first = attempt == Attempt::WhenReadable && abilities.poll_first;
            opcode::Recv::new(Fd(fd), ptr, len)
                .ioprio(if wait_first { POLL_FIRST } else { 0 })
                .build()
        }
        EntryKind::RecvMulti { fd } if abilities.repeated_recv => {
            opcode::RecvMulti::new(Fd(fd), POOL_GROUP).build()
        }
        EntryKind::RecvMulti { fd } => opcode::Recv::new(Fd(fd), ptr::null_mut(), 0)
            .buf_group(POOL_GROUP)
            .build()
            .flags(squeue::Flags::BUFFER_SELECT),
        EntryKind::Send { .. } | EntryKind::SendZeroCopy { .. } | EntryKind::SendMessage { .. } => {
            translate_send(kind)
        }
        EntryKind::ReceiveMessage { fd, message, flags } => opcode::RecvMsg::new(Fd(fd), message)
            .flags(flags.cast_unsigned())
            .build(),
        EntryKind::Shutdown { fd, how } => opcode::Shutdown::new(Fd(fd), how).build(),
        EntryKind::Read { fd, ptr, len } => opcode::Read::new(Fd(fd), ptr, len).build(),
        EntryKind::Write { fd, ptr, len } => opcode::Write::new(Fd(fd), ptr, len).build(),
        EntryKind::PollReadable { fd } => poll(fd, libc::POLLIN),
        EntryKind::PollWritable { fd } => poll(fd, libc::POLLOUT),
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

/// The part of [`translate`] that sends.
fn translate_send(kind: EntryKind) -> squeue::Entry {
    match kind {
        EntryKind::Send {
            fd,
            ptr,
            len,
            extent,
        } => opcode::Send::new(Fd(fd), ptr, len)
            .flags(send_flags(extent))
            .build(),
        EntryKind::SendZeroCopy {
            fd,
            ptr,
            len,
            extent,
        } => opcode::SendZc::new(Fd(fd), ptr, len)
            .flags(send_flags(extent))
            .build(),
        EntryKind::SendMessage { fd, message } => opcode::SendMsg::new(Fd(fd), message)
            .flags(libc::MSG_NOSIGNAL.cast_unsigned())
            .build(),
        other => unreachable!("{other:?} sends nothing"),
    }
}

fn poll(fd: RawFd, events: libc::c_short) -> squeue::Entry {
    opcode::PollAdd::new(Fd(fd), u32::from(events.cast_unsigned())).build()
}

fn send_flags(extent: Extent) -> libc::c_int {
    match extent {
        Extent::Some => libc::MSG_NOSIGNAL,
        Extent::All => libc::MSG_NOSIGNAL | libc::MSG_WAITALL,
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
