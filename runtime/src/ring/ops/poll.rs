//! Waiting until a socket is ready.
#![expect(
    unsafe_code,
    reason = "implements the contract of operations; holds no address"
)]

use std::io;

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
    /// Gives the lane back.
    type Output = io::Result<Outbound<K>>;

    const NAME: &'static str = "poll";

    fn entry(&mut self) -> EntryKind {
        EntryKind::PollWritable { fd: self.lane.fd() }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result()?;
        Ok(self.lane)
    }

    /// Nothing was given.
    fn orphan(self, _outcome: Outcome) {}
}
