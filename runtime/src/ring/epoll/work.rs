//! One operation, and the system call that tries to do it without blocking.
//!
//! Results are those of io_uring, which makes the same calls inside the kernel: a count or descriptor, or a negated
//! `errno`. Sockets are left in the mode they are in, blocking as a rule: flags of the call keep it from blocking where
//! there are such flags, and only listeners and descriptors without are switched to non-blocking.
#![expect(
    unsafe_code,
    reason = "makes the system calls that the entries describe, with their addresses"
)]

use std::os::fd::RawFd;
use std::ptr;

use super::call::{Errno, call};
use super::transfer::{self, Mode};
use super::waiting::Lane;
use crate::ring::backend::{Attempt, EntryKind, Extent};
use crate::ring::op::Flags;
use crate::ring::pool::BufferPool;

/// An operation on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) token: u64,
    kind: EntryKind,
    /// Bytes that earlier attempts sent.
    done: u32,
    /// Whether the descriptor was prepared, and for a connect: whether it is on its way.
    pub(super) is_begun: bool,
    /// Whether the descriptor was made non-blocking for this operation only.
    was_blocking: bool,
    /// How to transfer without blocking.
    pub(super) mode: Mode,
}

/// What an operation that goes on knows about what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// There may be more: try again.
    Perhaps,
    /// Nothing, unless the stream ended behind it: the next event tells, or the last one did.
    NothingButTheEnd,
}

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempted {
    /// It is over.
    Finished(i32, Flags),
    /// It did one of many, and goes on.
    Progressed(i32, Flags, Left),
    /// The descriptor is not ready.
    Blocked,
    /// The descriptor is not ready, and nothing will say when it is.
    Unheard,
    /// The descriptor is always ready, and the operation may block all the same.
    Blocks,
}

impl Work {
    pub(super) fn new(token: u64, kind: EntryKind) -> Work {
        Work {
            token,
            kind,
            done: 0,
            is_begun: false,
            was_blocking: false,
            mode: Mode::ByFlag,
        }
    }

    /// Where to wait for it; `None` if it never has to wait.
    pub(super) fn lane(&self) -> Option<(RawFd, Lane)> {
        match self.kind {
            EntryKind::Nop | EntryKind::Shutdown { .. } | EntryKind::Cancel { .. } => None,
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
            | EntryKind::CreateDir { .. } => None,
            EntryKind::AcceptMulti { fd }
            | EntryKind::RecvMulti { fd }
            | EntryKind::Recv { fd, .. }
            | EntryKind::ReceiveMessage { fd, .. }
            | EntryKind::Read { fd, .. }
            | EntryKind::ReadAt { fd, .. }
            | EntryKind::ReadVectoredAt { fd, .. } => Some((fd, Lane::Read)),
            EntryKind::PollReadable { fd } => Some((fd, Lane::PollRead)),
            EntryKind::PollWritable { fd } => Some((fd, Lane::PollWrite)),
            EntryKind::Connect { fd, .. }
            | EntryKind::Send { fd, .. }
            | EntryKind::SendZeroCopy { fd, .. }
            | EntryKind::SendMessage { fd, .. }
            | EntryKind::Write { fd, .. }
            | EntryKind::WriteAt { fd, .. }
            | EntryKind::WriteVectoredAt { fd, .. } => Some((fd, Lane::Write)),
        }
    }

    /// The descriptor it is about. It has one if it waits.
    pub(super) fn fd(&self) -> RawFd {
        self.lane().map_or(-1, |(fd, _)| fd)
    }

    /// Whether a first attempt is likely in vain.
    pub(super) fn waits_first(&self) -> bool {
        matches!(
            self.kind,
            EntryKind::Recv {
                attempt: Attempt::WhenReadable,
                ..
            }
        )
    }

    /// What to do.
    pub(super) fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The result of an operation that is cancelled now.
    pub(super) fn cancelled(&self) -> i32 {
        self.make_blocking_again();
        if self.done == 0 {
            -libc::ECANCELED
        } else {
            self.done.cast_signed()
        }
    }

    /// Tries to do it now. Receives that bring no buffer take one of the pool.
    pub(super) fn attempt(&mut self, pool: Option<&BufferPool>) -> Attempted {
        match self.kind {
            EntryKind::Nop => finished(Ok(0)),
            EntryKind::AcceptMulti { fd } => self.accept(fd),
            EntryKind::Connect {
                fd,
                address,
                address_len,
            } => self.connect(fd, address, address_len),
            EntryKind::Recv { fd, ptr, len, .. } => receive(fd, ptr, len),
            EntryKind::RecvMulti { fd } => receive_pooled(fd, pool),
            EntryKind::ReceiveMessage { fd, message, flags } => {
                // SAFETY: the record keeps the message and all it points to valid until the final completion.
                or_blocked(call(|| unsafe {
                    libc::recvmsg(fd, message, flags | libc::MSG_DONTWAIT)
                }))
            }
            // Nothing is sent without a copy here, so the memory is free at once: one completion.
            EntryKind::Send {
                fd,
                ptr,
                len,
                extent,
            }
            | EntryKind::SendZeroCopy {
                fd,
                ptr,
                len,
                extent,
            } => self.send(fd, ptr, len, extent),
            EntryKind::SendMessage { fd, message } => {
                // SAFETY: the record keeps the message and all it points to valid until the final completion.
                or_blocked(call(|| unsafe {
                    libc::sendmsg(fd, message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
                }))
            }
            EntryKind::Shutdown { fd, how } => {
                // SAFETY: takes no pointers.
                finished(call(|| unsafe { libc::shutdown(fd, how) as isize }))
            }
            EntryKind::PollReadable { fd } => poll_now(fd, libc::POLLIN),
            EntryKind::PollWritable { fd } => poll_now(fd, libc::POLLOUT),
            other => transfer::attempt(self, other),
        }
    }

    fn accept(&mut self, fd: RawFd) -> Attempted {
        // Another process may take the connection that made the listener ready, and there is no flag against waiting.
        if !self.is_begun
            && let Err(errno) = set_nonblocking(fd, true)
        {
            return finished(Err(errno));
        }
        self.is_begun = true;
        // SAFETY: no room for an address is given.
        let accepted = call(|| unsafe {
            libc::accept4(fd, ptr::null_mut(), ptr::null_mut(), libc::SOCK_CLOEXEC) as isize
        });
        match accepted {
            Ok(fd) => Attempted::Progressed(fd.cast_signed(), Flags::MORE, Left::Perhaps),
            failed => or_blocked(failed),
        }
    }

    fn connect(
        &mut self,
        fd: RawFd,
        address: *const libc::sockaddr,
        address_len: libc::socklen_t,
    ) -> Attempted {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if is_first {
            match is_nonblocking(fd).and_then(|already| {
                self.was_blocking = !already;
                set_nonblocking(fd, true)
            }) {
                Ok(()) => {}
                Err(errno) => return finished(Err(errno)),
            }
        }
        // Asked again, a connect tells how the first one went.
        // SAFETY: the record keeps the address valid until the final completion.
        let connected = call(|| unsafe { libc::connect(fd, address, address_len) as isize });
        match connected {
            Err(Errno(libc::EINPROGRESS | libc::EALREADY)) => return Attempted::Blocked,
            // A Unix socket whose peer has no room for one more. Room makes no event here.
            Err(Errno(libc::EAGAIN)) => return Attempted::Unheard,
            Err(Errno(libc::EISCONN)) if !is_first => {
                self.make_blocking_again();
                return finished(Ok(0));
            }
            _ => {}
        }
        self.make_blocking_again();
        finished(connected)
    }

    fn send(&mut self, fd: RawFd, ptr: *const u8, len: u32, extent: Extent) -> Attempted {
        loop {
            let rest = len - self.done;
            let from = ptr.wrapping_add(self.done as usize).cast();
            // SAFETY: the record keeps `len` bytes from `ptr` readable until the final completion; `done` of them were
            // sent.
            let sent = call(|| unsafe {
                libc::send(
                    fd,
                    from,
                    rest as usize,
                    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                )
            });
            match sent {
                Ok(count) if extent == Extent::All && count < rest => self.done += count,
                Ok(count) => return finished(Ok(self.done + count)),
                Err(Errno(libc::EAGAIN)) => return Attempted::Blocked,
                // What was sent before is the result; the next send meets the error again.
                Err(_) if self.done > 0 => return finished(Ok(self.done)),
                Err(errno) => return finished(Err(errno)),
            }
        }
    }

    fn make_blocking_again(&self) {
        if self.was_blocking {
            // It was switched the other way before, so it can be; and if not, nothing depends on it.
            set_nonblocking(self.fd(), false).ok();
        }
    }
}

fn receive(fd: RawFd, ptr: *mut u8, len: u32) -> Attempted {
    // SAFETY: the record keeps `len` bytes from `ptr` writable until the final completion, and nobody else reads them.
    let received = call(|| unsafe { libc::recv(fd, ptr.cast(), len as usize, libc::MSG_DONTWAIT) });
    match received {
        // A buffer that was filled may have left something behind: worth an attempt.
        Ok(count) if count == len && len > 0 => {
            Attempted::Finished(count.cast_signed(), Flags::SOCKET_NONEMPTY)
        }
        other => or_blocked(other),
    }
}

/// Receives into a buffer of the pool, which is given back unless something came.
fn receive_pooled(fd: RawFd, pool: Option<&BufferPool>) -> Attempted {
    let Some((pool, buffer)) = pool.and_then(|pool| Some((pool, pool.take()?))) else {
        return finished(Err(Errno(libc::ENOBUFS)));
    };
    let (ptr, len) = (pool.address(buffer).as_ptr().cast(), pool.buffer_bytes());
    // SAFETY: the buffer was just taken, so its bytes are nobody else's until it is put back or reported.
    let received = call(|| unsafe { libc::recv(fd, ptr, len as usize, libc::MSG_DONTWAIT) });
    match received {
        Ok(count @ 1..) => {
            let flags = Flags::MORE.with_buffer(buffer);
            if count == len {
                let flags = flags.with(Flags::SOCKET_NONEMPTY);
                Attempted::Progressed(count.cast_signed(), flags, Left::Perhaps)
            } else {
                Attempted::Progressed(count.cast_signed(), flags, Left::NothingButTheEnd)
            }
        }
        ended => {
            pool.put(buffer);
            or_blocked(ended)
        }
    }
}

/// What io_uring adds to the events of every poll, besides errors.
#[cfg(target_os = "linux")]
const PEER_IS_DONE: libc::c_short = libc::POLLRDHUP;
#[cfg(not(target_os = "linux"))]
const PEER_IS_DONE: libc::c_short = 0;

/// Completes with what a descriptor is ready for, of those events and errors.
fn poll_now(fd: RawFd, events: libc::c_short) -> Attempted {
    let mut poll = libc::pollfd {
        fd,
        events: events | PEER_IS_DONE,
        revents: 0,
    };
    // SAFETY: one valid entry.
    match call(|| unsafe { libc::poll(&raw mut poll, 1, 0) as isize }) {
        Ok(0) => Attempted::Blocked,
        Ok(_) if poll.revents & libc::POLLNVAL != 0 => finished(Err(Errno(libc::EBADF))),
        Ok(_) => Attempted::Finished(poll.revents.into(), Flags::default()),
        Err(errno) => finished(Err(errno)),
    }
}

fn is_nonblocking(fd: RawFd) -> Result<bool, Errno> {
    // SAFETY: takes no pointers.
    let flags = call(|| unsafe { libc::fcntl(fd, libc::F_GETFL) as isize })?;
    Ok(flags.cast_signed() & libc::O_NONBLOCK != 0)
}

pub(super) fn set_nonblocking(fd: RawFd, nonblocking: bool) -> Result<(), Errno> {
    let mut on = libc::c_int::from(nonblocking);
    // SAFETY: the request reads one integer.
    call(|| unsafe { libc::ioctl(fd, libc::FIONBIO, &raw mut on) as isize }).map(drop)
}

pub(super) fn or_blocked(result: Result<u32, Errno>) -> Attempted {
    match result {
        Err(Errno(libc::EAGAIN)) => Attempted::Blocked,
        other => finished(other),
    }
}

pub(super) fn finished(result: Result<u32, Errno>) -> Attempted {
    let result = match result {
        Ok(count) => i32::try_from(count).expect("lengths are within what one call takes"),
        Err(Errno(errno)) => -errno,
    };
    Attempted::Finished(result, Flags::default())
}
