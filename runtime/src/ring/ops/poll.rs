//! Waiting until a socket is ready.
#![expect(
    unsafe_code,
    reason = "implements the contract of operations; holds no address"
)]

use std::io;
use std::os::fd::AsRawFd;

use mio::unix::SourceFd;
use mio::{Interest, Token};

use crate::ring::backend::EntryKind;
use crate::ring::op::{Operation, Outcome};
use crate::ring::socket::{Inbound, Outbound};

/// Waits until there is something to receive: bytes, the end, or an error.
pub(crate) struct PollReadable<K> {
    lane: Inbound<K>,
}

impl<K> PollReadable<K> {
    pub(crate) fn new(lane: Inbound<K>) -> PollReadable<K> {
        PollReadable { lane }
    }
}

// SAFETY: the entry holds no address.
unsafe impl<K: 'static> Operation for PollReadable<K> {
    /// Gives the lane back.
    type Output = io::Result<Inbound<K>>;

    const NAME: &'static str = "poll";

    fn entry(&mut self) -> EntryKind {
        EntryKind::PollReadable { fd: self.lane.fd() }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result()?;
        Ok(self.lane)
    }

    /// Nothing was given.
    fn orphan(self, _outcome: Outcome) {}
}

/// Waits until a send would take something.
pub(crate) struct PollWritable<K> {
    lane: Outbound<K>,
}

impl<K> PollWritable<K> {
    pub(crate) fn new(lane: Outbound<K>) -> PollWritable<K> {
        PollWritable { lane }
    }
}

// SAFETY: the entry holds no address.
unsafe impl<K: 'static> Operation for PollWritable<K> {
    /// Gives the lane back if it ended without that: because the peer sends no more, which [`PollRoom`] overlooks.
    type Output = io::Result<Option<Outbound<K>>>;

    const NAME: &'static str = "poll";

    fn entry(&mut self) -> EntryKind {
        EntryKind::PollWritable { fd: self.lane.fd() }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        let seen = outcome?.into_result()?;
        let is_over = seen & u32::from(WRITE_EVENTS.cast_unsigned()) != 0;
        Ok((!is_over).then_some(self.lane))
    }

    /// Nothing was given.
    fn orphan(self, _outcome: Outcome) {}
}

/// What ends a wait for writing: room, an error, or the end of both directions.
const WRITE_EVENTS: libc::c_short = libc::POLLOUT | libc::POLLERR | libc::POLLHUP;

/// Waits until a send to a peer that sends no more would take something.
///
/// io_uring ends every wait on such a socket at once, whatever it was to wait for. An epoll instance tells only what it
/// was asked for, so one is put in between.
pub(crate) struct PollRoom<K> {
    gate: mio::Poll,
    /// Keeps the socket open, and other sends away.
    _lane: Outbound<K>,
}

impl<K> PollRoom<K> {
    /// # Errors
    ///
    /// If there is no descriptor or no memory left for the epoll instance.
    pub(crate) fn new(lane: Outbound<K>) -> io::Result<PollRoom<K>> {
        let gate = mio::Poll::new()?;
        let fd = lane.fd();
        gate.registry()
            .register(&mut SourceFd(&fd), Token(0), Interest::WRITABLE)?;
        Ok(PollRoom { gate, _lane: lane })
    }
}

// SAFETY: the entry holds no address.
unsafe impl<K: 'static> Operation for PollRoom<K> {
    type Output = io::Result<()>;

    const NAME: &'static str = "poll";

    fn entry(&mut self) -> EntryKind {
        EntryKind::PollReadable {
            fd: self.gate.as_raw_fd(),
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result().map(drop)
    }

    /// Nothing was given.
    fn orphan(self, _outcome: Outcome) {}
}
