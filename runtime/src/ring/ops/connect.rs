//! Connecting a socket.
#![expect(unsafe_code, reason = "hands out an address inside its own payload")]

use std::io;

use socket2::SockAddr;

use crate::ring::backend::EntryKind;
use crate::ring::op::{Operation, Outcome};
use crate::ring::socket::Outbound;

/// Connects a socket to a peer.
pub(crate) struct Connect<K> {
    lane: Outbound<K>,
    address: SockAddr,
}

impl<K: 'static> Connect<K> {
    pub(crate) fn new(lane: Outbound<K>, address: SockAddr) -> Connect<K> {
        Connect { lane, address }
    }
}

// SAFETY: the address points into the payload itself, which nobody touches before the final completion.
unsafe impl<K: 'static> Operation for Connect<K> {
    type Output = io::Result<()>;

    const NAME: &'static str = "connect";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Connect {
            fd: self.lane.fd(),
            address: self.address.as_ptr().cast(),
            address_len: self.address.len(),
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        outcome?.into_result().map(drop)
    }

    /// The socket, connected or not, closes with the lane: whoever wanted it is gone.
    fn orphan(self, _outcome: Outcome) {}
}
