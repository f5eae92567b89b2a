//! Telling when descriptors become ready, through `mio`: epoll on Linux, kqueue on its relatives.
//!
//! Registrations are edge-triggered and renewed with every wait: renewing asks the kernel to look again, so an edge
//! that came while nobody waited is not missed, and a number that was closed and given out again is registered as what
//! it is now. The other way round, an event says nothing but "try again": whether an operation ends is up to the
//! system call, so one that was meant for an earlier owner of the number costs an attempt and does no harm.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

/// How many events one look at the kernel returns. What is left stays there for the next.
const EVENTS_MAX: usize = 256;

/// The event of a [`Waker`]: no descriptor has this number.
const WAKE: Token = Token(usize::MAX);

/// The kernel's list of descriptors to watch.
pub(super) struct Poller {
    poll: Poll,
    events: Events,
}

/// What to watch a descriptor for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// What became possible on a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) fd: RawFd,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// The peer will send no more: what is left to read ends with the end.
    pub(super) is_ending: bool,
}

impl Poller {
    pub(super) fn new() -> io::Result<Poller> {
        Ok(Poller {
            poll: Poll::new()?,
            events: Events::with_capacity(EVENTS_MAX),
        })
    }

    /// Watches a descriptor from now on, and reports at once what is possible already.
    ///
    /// # Errors
    ///
    /// If the file cannot be watched, or the kernel ran out of something.
    pub(super) fn watch(&self, fd: RawFd, wanted: Wanted) -> io::Result<()> {
        let interest = match wanted {
            Wanted {
                reads: true,
                writes: true,
            } => Interest::READABLE | Interest::WRITABLE,
            Wanted { writes: true, .. } => Interest::WRITABLE,
            Wanted { .. } => Interest::READABLE,
        };
        let registry = self.poll.registry();
        let token = Token(usize::try_from(fd).map_err(|_| bad_descriptor())?);
        let mut source = SourceFd(&fd);
        // Descriptors are waited for many times between being opened and being closed.
        match registry.reregister(&mut source, token, interest) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                registry.register(&mut source, token, interest)
            }
            other => other,
        }
    }

    /// Watches a descriptor no longer.
    ///
    /// # Errors
    ///
    /// If it is not watched: closing a descriptor ends that too, unless a duplicate keeps the file open.
    pub(super) fn forget(&self, fd: RawFd) -> io::Result<()> {
        self.poll.registry().deregister(&mut SourceFd(&fd))
    }

    /// Something that ends a wait from another thread. There must not be two at a time.
    pub(super) fn waker(&self) -> io::Result<Waker> {
        Waker::new(self.poll.registry(), WAKE)
    }

    /// Starts over with an empty list.
    pub(super) fn reset(&mut self) -> io::Result<()> {
        self.poll = Poll::new()?;
        Ok(())
    }

    /// Waits for something to become possible, for as long as told, and hands it to `sink`.
    pub(super) fn wait(
        &mut self,
        timeout: Option<Duration>,
        mut sink: impl FnMut(Ready),
    ) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            // A signal: nothing was lost.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in self.events.iter().filter(|event| event.token() != WAKE) {
            sink(Ready {
                fd: RawFd::try_from(event.token().0).expect("registered under its own number"),
                reads: event.is_readable() || event.is_read_closed() || event.is_error(),
                writes: event.is_writable() || event.is_write_closed() || event.is_error(),
                is_ending: event.is_read_closed() || event.is_error(),
            });
        }
        Ok(())
    }
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").finish_non_exhaustive()
    }
}

fn bad_descriptor() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}
