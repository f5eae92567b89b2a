//! Sending to a socket without copying.
//!
//! The kernel reports twice: first how much was sent, later that it has let go of the memory. The first report releases
//! the lane, so that the next send can follow; the buffer stays until the second one, which may take until the peer has
//! acknowledged every byte.
#![expect(unsafe_code, reason = "hands out the address of its own buffer")]

use std::io;

use crate::ring::backend::{EntryKind, Extent};
use crate::ring::buffer::{IoBuf, transfer_len};
use crate::ring::op::{Effects, Operation, Outcome, Pace, Progress};
use crate::ring::received::Received;
use crate::ring::socket::Outbound;

/// Sends once from a buffer that the network reads directly.
pub(crate) struct SendZeroCopy<B> {
    /// Taken out by the first completion. It also keeps the socket open, which must not wait for the second one: if the
    /// peer does not read, closing is what ends it.
    lane: Option<Outbound<Received>>,
    /// In a box, because the payload is touched while the kernel reads the buffer.
    buffer: Box<B>,
}

impl<B: IoBuf> SendZeroCopy<B> {
    pub(crate) fn new(lane: Outbound<Received>, buffer: B) -> SendZeroCopy<B> {
        SendZeroCopy {
            lane: Some(lane),
            buffer: Box::new(buffer),
        }
    }

    fn sent(&mut self, _outcome: Outcome, effects: &mut Effects) -> Pace {
        if let Some(lane) = self.lane.take() {
            lane.release_into(effects);
        }
        Pace::GoOn
    }
}

// SAFETY: the address is that of the buffer, or points into it, and the buffer is in a box, outside of the payload.
// `IoBuf` promises that the bytes stay valid and unwritten while the buffer is untouched, and `sent` does not touch it.
unsafe impl<B: IoBuf> Operation for SendZeroCopy<B> {
    /// The buffer, once the kernel has let go of it. What was sent is the first outcome.
    type Output = B;

    const NAME: &'static str = "send without copying";
    const CAN_HIDE: bool = true;
    const PROGRESS: Option<Progress<Self>> = Some(Self::sent);

    fn entry(&mut self) -> EntryKind {
        let lane = self.lane.as_ref().expect("taken out by a completion");
        EntryKind::SendZeroCopy {
            fd: lane.fd(),
            ptr: self.buffer.as_ptr(),
            len: transfer_len(self.buffer.len()),
            extent: Extent::All,
        }
    }

    fn complete(self, _outcome: io::Result<Outcome>) -> B {
        *self.buffer
    }

    /// What was sent was sent.
    fn orphan(self, _outcome: Outcome) {}
}
