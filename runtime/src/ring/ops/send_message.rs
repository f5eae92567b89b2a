//! Sending to a socket from several buffers.
#![expect(
    unsafe_code,
    reason = "hands out the addresses of its own buffers and of their list"
)]

use std::io;
use std::ptr;

use crate::ring::backend::EntryKind;
use crate::ring::buffer::{BufResult, IoBuf};
use crate::ring::op::{Operation, Outcome};
use crate::ring::received::Received;
use crate::ring::socket::Outbound;

/// The kernel takes at most this many pieces in one message.
const PIECES_MAX: usize = 1024;

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
        let message = libc::msghdr {
            msg_name: ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: ptr::null_mut(),
            msg_iovlen: 0,
            msg_control: ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        };
        SendMessage {
            lane,
            buffers,
            skip,
            pieces: Vec::new(),
            message,
        }
    }

    fn collect_pieces(&mut self) {
        let mut skip = self.skip;
        self.pieces.clear();
        for buffer in &self.buffers {
            let skipped = skip.min(buffer.len());
            skip -= skipped;
            if skipped < buffer.len() && self.pieces.len() < PIECES_MAX {
                self.pieces.push(libc::iovec {
                    iov_base: buffer.as_ptr().wrapping_add(skipped).cast_mut().cast(),
                    iov_len: buffer.len() - skipped,
                });
            }
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
        self.collect_pieces();
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
