//! Waiting for the doorbell, the eventfd by which other threads wake a shard.
//!
//! The owner of the driver keeps the eventfd open as long as the driver, so these operations hold its number only.
#![expect(unsafe_code, reason = "hands out an address inside its own payload")]

use std::io;
use std::os::fd::RawFd;

use crate::ring::backend::EntryKind;
use crate::ring::op::{Operation, Outcome};

/// Reads the count of an eventfd once it is not zero.
#[derive(Debug)]
pub(crate) struct DoorbellRead {
    fd: RawFd,
    count: u64,
}

impl DoorbellRead {
    pub(crate) fn new(fd: RawFd) -> DoorbellRead {
        DoorbellRead { fd, count: 0 }
    }

    /// What was read: how often the bell was rung.
    pub(crate) fn count(&self, outcome: Outcome) -> u64 {
        match outcome.into_result() {
            Ok(8) => self.count,
            Ok(_) | Err(_) => 0,
        }
    }
}

// SAFETY: the address points into the payload itself, which nobody touches before the final completion.
unsafe impl Operation for DoorbellRead {
    type Output = io::Result<()>;

    const NAME: &'static str = "doorbell read";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Read {
            fd: self.fd,
            ptr: (&raw mut self.count).cast(),
            len: 8,
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result().map(drop)
    }

    /// Nobody is left to wake.
    fn orphan(self, _outcome: Outcome) {}
}

/// Waits until an eventfd is readable.
#[derive(Debug)]
pub(crate) struct DoorbellPoll {
    fd: RawFd,
}

impl DoorbellPoll {
    pub(crate) fn new(fd: RawFd) -> DoorbellPoll {
        DoorbellPoll { fd }
    }
}

// SAFETY: the entry holds no address.
unsafe impl Operation for DoorbellPoll {
    type Output = io::Result<()>;

    const NAME: &'static str = "doorbell poll";

    fn entry(&mut self) -> EntryKind {
        EntryKind::PollReadable { fd: self.fd }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result().map(drop)
    }

    /// Nobody is left to wake.
    fn orphan(self, _outcome: Outcome) {}
}
