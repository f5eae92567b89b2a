//! The border to the kernel: entries go in, completions come out.
//!
//! Everything above this trait is free of system calls and of io_uring's types, so a scripted kernel can stand in
//! for the real one. A backend neither owns nor dereferences the addresses in an [`Entry`] on its own account: it
//! hands them to the kernel, and their owner keeps them valid until the final completion.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

#[cfg(test)]
use super::fake::FakeKernel;
use super::op::Completion;
use super::uring::Uring;

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
    /// Takes one connection from a listener. Completes with its descriptor.
    Accept {
        fd: RawFd,
        address: *mut libc::sockaddr,
        address_len: *mut libc::socklen_t,
    },
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
    /// Sends from memory. Completes with the count.
    Send {
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
    /// Waits until a file is readable.
    PollReadable { fd: RawFd },
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

/// The backends there are. An enum, not a trait object: the hot path stays statically dispatched.
#[derive(Debug)]
pub(crate) enum AnyBackend {
    /// The real thing.
    Uring(Uring),
    /// The scripted kernel of the tests.
    #[cfg(test)]
    Fake(FakeKernel),
}

impl Backend for AnyBackend {
    fn push(&mut self, entry: &Entry) -> bool {
        match self {
            AnyBackend::Uring(uring) => uring.push(entry),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.push(entry),
        }
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        match self {
            AnyBackend::Uring(uring) => uring.enter(wait),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.enter(wait),
        }
    }

    fn reap(&mut self, sink: impl FnMut(Completion)) {
        match self {
            AnyBackend::Uring(uring) => uring.reap(sink),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.reap(sink),
        }
    }

    fn has_completions(&self) -> bool {
        match self {
            AnyBackend::Uring(uring) => uring.has_completions(),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.has_completions(),
        }
    }

    fn wants_enter(&self) -> bool {
        match self {
            AnyBackend::Uring(uring) => uring.wants_enter(),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.wants_enter(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            AnyBackend::Uring(uring) => uring.name(),
            #[cfg(test)]
            AnyBackend::Fake(fake) => fake.name(),
        }
    }
}
