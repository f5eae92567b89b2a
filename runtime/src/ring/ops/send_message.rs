//! Sending to a socket from several buffers.
#![expect(
    unsafe_code,
    reason = "hands out the addresses of its own buffers and of their list"
)]

use std::io;

use super::message;
use super::pieces::list_rest;
use crate::ring::backend::EntryKind;
use crate::ring::buffer::{BufResult, IoBuf};
use crate::ring::op::{Operation, Outcome};
use crate::ring::received::Received;
use crate::ring::socket::Outbound;

/// Sends once from several buffers, in order.
pub(crate) struct SendMessage<B> {
    lane: Outbound<Received>,
    buffers: Vec<B>,
    /// How many bytes at the front were sent before.
    skip: usize,
    /// Where the rest of the bytes are. Filled when the buffers are in place.
    pieces: Vec<libc::iovec>,
    message: libc::msghdr,
}

impl<B: IoBuf> SendMessage<B> {
    pub(crate) fn new(lane: Outbound<Received>, buffers: Vec<B>, skip: usize) -> SendMessage<B> {
        SendMessage {
            lane,
            buffers,
            skip,
            pieces: Vec::new(),
            message: message::EMPTY,
        }
    }
}

// SAFETY: the message header lies in the payload, the list of pieces and the buffers in vectors it owns (inline bytes
// of a buffer in the vector's memory); `IoBuf` promises that the bytes stay valid and unwritten while the payload is
// untouched.
unsafe impl<B: IoBuf> Operation for SendMessage<B> {
    type Output = BufResult<usize, Vec<B>>;

    const NAME: &'static str = "sendmsg";
    const CAN_HIDE: bool = true;

    fn entry(&mut self) -> EntryKind {
        list_rest(&self.buffers, self.skip, &mut self.pieces);
        self.message.msg_iov = self.pieces.as_mut_ptr();
        self.message.msg_iovlen = self.pieces.len();
        EntryKind::SendMessage {
            fd: self.lane.fd(),
            message: &raw const self.message,
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(Outcome::into_result);
        (result.map(|count| count as usize), self.buffers)
    }

    /// What was sent was sent.
    fn orphan(self, _outcome: Outcome) {}
}
