//! Accepting a connection.
#![expect(
    unsafe_code,
    reason = "hands out addresses inside its own payload, and owns the descriptor it is given"
)]

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd};

use super::sockaddr::RawAddress;
use crate::ring::backend::EntryKind;
use crate::ring::op::{Operation, Outcome};
use crate::ring::socket::{Inbound, Socket};

/// A listening socket. Connections that a cancelled accept took are kept for the next accept.
pub(crate) type ListenerSocket = Socket<VecDeque<Accepted>>;

/// A new connection and who is at the other end.
pub(crate) type Accepted = (OwnedFd, SocketAddr);

/// Takes one connection from a listener.
pub(crate) struct Accept {
    lane: Inbound<VecDeque<Accepted>>,
    address: RawAddress,
    address_len: libc::socklen_t,
}

impl Accept {
    pub(crate) fn new(lane: Inbound<VecDeque<Accepted>>) -> Accept {
        Accept {
            lane,
            address: RawAddress::EMPTY,
            address_len: RawAddress::capacity(),
        }
    }

    /// Takes ownership of the descriptor in a successful outcome.
    fn accepted(&self, outcome: Outcome) -> io::Result<Accepted> {
        outcome.into_result()?;
        // SAFETY: a successful accept returns a new descriptor, which this takes once: an operation either completes
        // or is orphaned.
        let fd = unsafe { OwnedFd::from_raw_fd(outcome.result) };
        let address = self.address.decode();
        let address = address
            .ok_or_else(|| io::Error::other("the peer's address is not an internet address"))?;
        Ok((fd, address))
    }
}

// SAFETY: both addresses point into the payload itself, which nobody touches before the final completion.
unsafe impl Operation for Accept {
    type Output = io::Result<Accepted>;

    const NAME: &'static str = "accept";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Accept {
            fd: self.lane.fd(),
            address: (&raw mut self.address).cast(),
            address_len: &raw mut self.address_len,
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        self.accepted(outcome?)
    }

    /// Keeps the connection for the next accept. If the listener has gone it closes with it, when the lane ends.
    fn orphan(self, outcome: Outcome) {
        if let Ok(accepted) = self.accepted(outcome) {
            self.lane.with_kept(|kept| kept.push_back(accepted));
        }
    }
}
