//! The border to the kernel: entries go in, completions come out.
//!
//! Everything above this trait is free of system calls and of io_uring's types, so a scripted kernel can stand in
//! for the real one. A backend neither owns nor dereferences the addresses in an [`Entry`] on its own account: it
//! hands them to the kernel, and their owner keeps them valid until the final completion.

use std::ffi::c_char;
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::RingConfig;
use super::epoll::Epoll;
#[cfg(test)]
use super::fake::FakeKernel;
use super::op::Completion;
use super::pool::{BufferPool, BufferPoolConfig};
use super::probe::BackendError;
use super::uring::Uring;
use crate::blocking::pool::Pool;

/// A source of completions.
pub(crate) trait Backend {
    /// Queues `entry` for the next [`enter`](Self::enter). Returns `false`, and takes nothing, when the queue is
    /// full.
    fn push(&mut self, entry: &Entry) -> bool;

    /// Hands the queued entries to the kernel, lets it run completions, and waits as `wait` says.
    ///
    /// # Errors
    ///
    /// Only failures after which the backend is of no further use. An interrupted, timed-out or overloaded call is
    /// an `Ok` after which the caller reaps and tries again.
    fn enter(&mut self, wait: Wait) -> io::Result<()>;

    /// Hands every completion that is ready to `sink`, without a system call.
    fn reap(&mut self, sink: impl FnMut(Completion));

    /// Whether [`reap`](Self::reap) would find something.
    fn has_completions(&self) -> bool;

    /// Whether only an [`enter`](Self::enter) gets things moving: entries not yet handed over, completions the
    /// kernel holds back until asked, or completions that did not fit into the queue.
    fn wants_enter(&self) -> bool;

    /// Makes the pool that [`EntryKind::RecvMulti`] takes buffers from. Called at most once.
    ///
    /// # Errors
    ///
    /// If there is no memory for it, or the backend has no such receives: they are not asked for then.
    fn make_pool(&mut self, config: &BufferPoolConfig) -> io::Result<Rc<BufferPool>>;

    /// Whether [`EntryKind::SendZeroCopy`] is available.
    fn has_zero_copy(&self) -> bool;
    /// Whether something may have happened that only an [`enter`](Self::enter) finds out, and that none of the signs
    /// above would show. Such a backend is entered by every turn, busy or not.
    fn is_blind(&self) -> bool;

    /// The name shown to users.
    fn name(&self) -> &'static str;
}

/// How long an enter may wait for a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    Poll,
    /// Until one completion is there, or the time is over; for ever with `None`.
    Until(Option<Duration>),
    /// The same, but until `count` completions are there or the window is over, if the backend can. After the window
    /// one is enough. The window ends before the time does.
    Gather {
        count: u32,
        window: Duration,
        until: Option<Duration>,
    },
}

/// One request to the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    /// Comes back with every completion of this entry.
    pub(crate) token: u64,
}

/// What is asked for. Lengths are already within what the kernel takes in one call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntryKind {
    /// Completes with zero.
    Nop,
    /// Takes connections from a listener until it is cancelled or fails. Each completion has a descriptor.
    ///
    /// As all operations of many completions it may end at any completion, for the backend's own reasons; it is started
    /// again then. A backend that cannot repeat itself ends after the first one.
    AcceptMulti { fd: RawFd },
    /// Connects a socket.
    Connect {
        fd: RawFd,
        address: *const libc::sockaddr,
        address_len: libc::socklen_t,
    },
    /// Receives into memory. Completes with the count; zero is the end of the stream.
    Recv {
        fd: RawFd,
        ptr: *mut u8,
        len: u32,
        attempt: Attempt,
    },
    /// Receives one message into the pieces of a header, with its address and control data. Completes with the count.
    ReceiveMessage {
        fd: RawFd,
        message: *mut libc::msghdr,
        /// Of `recvmsg`.
        flags: i32,
    },
    /// Receives from a socket until it is cancelled, fails, or the stream ends (zero). Each completion has a count and a
    /// buffer of the pool, taken when there is something to put into it. `ENOBUFS` if there was none to take.
    ///
    /// Ends at any completion, like [`AcceptMulti`](Self::AcceptMulti).
    RecvMulti { fd: RawFd },
    /// Sends from memory. Completes with the count.
    Send {
        fd: RawFd,
        ptr: *const u8,
        len: u32,
        extent: Extent,
    },
    /// Sends from memory without copying it. A first completion has the count; if it says [`Flags::MORE`] the memory is
    /// still in use, until a second completion.
    ///
    /// [`Flags::MORE`]: super::op::Flags::MORE
    SendZeroCopy {
        fd: RawFd,
        ptr: *const u8,
        len: u32,
        extent: Extent,
    },
    /// Sends from the pieces of a message. Completes with the count.
    SendMessage {
        fd: RawFd,
        message: *const libc::msghdr,
    },
    /// Shuts down one or both directions of a socket.
    Shutdown { fd: RawFd, how: i32 },
    /// Reads into memory from a file without a position. Completes with the count.
    Read { fd: RawFd, ptr: *mut u8, len: u32 },
    /// Writes from memory to a file without a position. Completes with the count.
    Write { fd: RawFd, ptr: *const u8, len: u32 },
    /// Waits until a file is readable.
    PollReadable { fd: RawFd },
    /// Waits until a file is writable.
    PollWritable { fd: RawFd },
    /// Opens a file; a relative path starts at the working directory. Completes with its descriptor.
    Open {
        path: *const c_char,
        flags: i32,
        mode: libc::mode_t,
    },
    /// Closes a descriptor, which is gone however this ends, unless it is cancelled before it starts.
    Close { fd: RawFd },
    /// Reads into memory from a position of a file. Completes with the count; zero is the end of the file. A file
    /// without positions (a pipe, a terminal) ignores the offset, here and in the next three.
    ReadAt {
        fd: RawFd,
        ptr: *mut u8,
        len: u32,
        offset: u64,
    },
    /// Writes from memory to a position of a file. Completes with the count.
    WriteAt {
        fd: RawFd,
        ptr: *const u8,
        len: u32,
        offset: u64,
    },
    /// Reads into several pieces of memory from a position of a file.
    ReadVectoredAt {
        fd: RawFd,
        pieces: *const libc::iovec,
        piece_count: u32,
        offset: u64,
    },
    /// Writes from several pieces of memory to a position of a file.
    WriteVectoredAt {
        fd: RawFd,
        pieces: *const libc::iovec,
        piece_count: u32,
        offset: u64,
    },
    /// Waits until what was written to a file is on its device.
    Sync { fd: RawFd, scope: SyncScope },
    /// Reserves or frees space of a file, as `fallocate` does.
    Allocate {
        fd: RawFd,
        mode: i32,
        offset: u64,
        len: u64,
    },
    /// Sets the length of a file. Linux 6.9; older kernels answer `EINVAL`.
    SetLen { fd: RawFd, len: u64 },
    /// Asks about a file, as `statx` does.
    Stat {
        dir: RawFd,
        path: *const c_char,
        flags: i32,
        mask: u32,
        stat: *mut libc::statx,
    },
    /// Renames a file, replacing what has the new name. Paths, here and in the next four, as in `Open`.
    Rename {
        from: *const c_char,
        to: *const c_char,
    },
    /// Gives a file one more name. Does not follow a symbolic link.
    HardLink {
        original: *const c_char,
        link: *const c_char,
    },
    /// Makes a symbolic link.
    Symlink {
        target: *const c_char,
        link: *const c_char,
    },
    /// Removes a name: of a directory with `AT_REMOVEDIR` among the flags, else of anything else.
    Unlink { path: *const c_char, flags: i32 },
    /// Makes a directory.
    CreateDir {
        path: *const c_char,
        mode: libc::mode_t,
    },
    /// Asks that the operation with this token end early. Its own completion says nothing about that operation.
    Cancel { target: u64 },
}

/// Whether a receive tries the socket at once or first waits for it to become readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Tries at once: right if data is likely there.
    AtOnce,
    /// Waits first: saves the attempt on a socket that the last receive emptied.
    WhenReadable,
}

/// How much a send should get rid of before it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What the socket takes now.
    Some,
    /// All of it, as far as the kernel can arrange that.
    All,
}

/// What has to reach the device before a sync ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncScope {
    /// The contents, and all that is known about the file.
    All,
    /// The contents, and what it takes to find them again.
    Data,
}

/// The backends there are. An enum, not a trait object: the hot path stays statically dispatched.
#[derive(Debug)]
pub(crate) enum AnyBackend {
    /// The real thing.
    Uring(Uring),
    /// For systems that refuse it.
    Epoll(Box<Epoll>),
    /// The scripted kernel of the tests.
    #[cfg(test)]
    Fake(FakeKernel),
}

impl AnyBackend {
    /// A ring of the calling thread.
    ///
    /// # Errors
    ///
    /// If io_uring does not work here; the error tells what to change.
    pub(crate) fn uring(config: &RingConfig) -> Result<AnyBackend, BackendError> {
        Uring::new(config).map(AnyBackend::Uring)
    }

    /// What works where rings do not. Files are the business of the pool.
    ///
    /// # Errors
    ///
    /// If the process has no descriptor left.
    pub(crate) fn epoll(config: &RingConfig, pool: &Arc<Pool>) -> Result<AnyBackend, BackendError> {
        let epoll = Epoll::new(config, pool.clone())?;
        Ok(AnyBackend::Epoll(Box::new(epoll)))
    }
}

impl Backend for AnyBackend {
    fn push(&mut self, entry: &Entry) -> bool {
        match self {
            AnyBackend::Uring(uring) => uring.push(entry),
            AnyBackend::Epoll(epoll) => epoll.push(entry),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.push(entry),
        }
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        match self {
            AnyBackend::Uring(uring) => uring.enter(wait),
            AnyBackend::Epoll(epoll) => epoll.enter(wait),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.enter(wait),
        }
    }

    fn reap(&mut self, sink: impl FnMut(Completion)) {
        match self {
            AnyBackend::Uring(uring) => uring.reap(sink),
            AnyBackend::Epoll(epoll) => epoll.reap(sink),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.reap(sink),
        }
    }

    fn has_completions(&self) -> bool {
        match self {
            AnyBackend::Uring(uring) => uring.has_completions(),
            AnyBackend::Epoll(epoll) => epoll.has_completions(),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.has_completions(),
        }
    }

    fn wants_enter(&self) -> bool {
        match self {
            AnyBackend::Uring(uring) => uring.wants_enter(),
            AnyBackend::Epoll(epoll) => epoll.wants_enter(),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.wants_enter(),
        }
    }

    fn make_pool(&mut self, config: &BufferPoolConfig) -> io::Result<Rc<BufferPool>> {
        match self {
            AnyBackend::Uring(uring) => uring.make_pool(config),
            AnyBackend::Epoll(epoll) => epoll.make_pool(config),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.make_pool(config),
        }
    }

    fn has_zero_copy(&self) -> bool {
        match self {
            AnyBackend::Uring(uring) => uring.has_zero_copy(),
            AnyBackend::Epoll(epoll) => epoll.has_zero_copy(),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.has_zero_copy(),
        }
    }

    fn is_blind(&self) -> bool {
        match self {
            AnyBackend::Uring(uring) => uring.is_blind(),
            AnyBackend::Epoll(epoll) => epoll.is_blind(),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.is_blind(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            AnyBackend::Uring(uring) => uring.name(),
            AnyBackend::Epoll(epoll) => epoll.name(),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.name(),
        }
    }
}
