//! Sending to a socket from one buffer.
#![expect(unsafe_code, reason = "hands out the address of its own buffer")]

use std::io;

use crate::ring::backend::{EntryKind, Extent};
use crate::ring::buffer::{BufResult, IoBuf, transfer_len};
use crate::ring::op::{Operation, Outcome};
use crate::ring::received::Received;
use crate::ring::socket::Outbound;

/// Sends once from a buffer.
pub(crate) struct Send<B> {
    lane: Outbound<Received>,
    buffer: B,
    extent: Extent,
}

impl<B: IoBuf> Send<B> {
    pub(crate) fn new(lane: Outbound<Received>, buffer: B, extent: Extent) -> Send<B> {
        Send {
            lane,
            buffer,
            extent,
        }
    }
}

// SAFETY: the address is the buffer's. `IoBuf` promises that it stays valid and unwritten while the payload is
// untouched.
unsafe impl<B: IoBuf> Operation for Send<B> {
    type Output = BufResult<usize, B>;

    const NAME: &'static str = "send";
    const CAN_HIDE: bool = true;

    fn entry(&mut self) -> EntryKind {
        EntryKind::Send {
            fd: self.lane.fd(),
            ptr: self.buffer.as_ptr(),
            len: transfer_len(self.buffer.len()),
            extent: self.extent,
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(Outcome::into_result);
        (result.map(|count| count as usize), self.buffer)
    }

    /// What was sent was sent.
    fn orphan(self, _outcome: Outcome) {}
}
