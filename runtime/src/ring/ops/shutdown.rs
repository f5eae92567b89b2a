//! Shutting a socket down.
#![expect(
    unsafe_code,
    reason = "implements the contract of operations; holds no address"
)]

use std::io;
use std::net::Shutdown as Direction;

use crate::ring::backend::EntryKind;
use crate::ring::op::{Operation, Outcome};
use crate::ring::received::Received;
use crate::ring::socket::Outbound;

/// Shuts down one or both directions of a socket.
pub(crate) struct Shutdown {
    lane: Outbound<Received>,
    direction: Direction,
}

impl Shutdown {
    pub(crate) fn new(lane: Outbound<Received>, direction: Direction) -> Shutdown {
        Shutdown { lane, direction }
    }
}

// SAFETY: the entry holds no address.
unsafe impl Operation for Shutdown {
    type Output = io::Result<()>;

    const NAME: &'static str = "shutdown";

    fn entry(&mut self) -> EntryKind {
        let how = match self.direction {
            Direction::Read => libc::SHUT_RD,
            Direction::Write => libc::SHUT_WR,
            Direction::Both => libc::SHUT_RDWR,
        };
        EntryKind::Shutdown {
            fd: self.lane.fd(),
            how,
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result().map(drop)
    }

    /// Nothing was given.
    fn orphan(self, _outcome: Outcome) {}
}
