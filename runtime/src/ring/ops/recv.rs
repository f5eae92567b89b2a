//! Receiving from a socket.
#![expect(
    unsafe_code,
    reason = "hands out the address of its own buffer, and notes what the kernel wrote"
)]

use std::io;

use crate::ring::backend::{Attempt, EntryKind};
use crate::ring::buffer::{BufResult, IoBufMut, initialised, transfer_len};
use crate::ring::op::{Flags, Operation, Outcome};
use crate::ring::pooled::PooledBuf;
use crate::ring::received::Received;
use crate::ring::socket::{Inbound, Socket};

/// A connected socket.
pub(crate) type StreamSocket = Socket<Received>;

/// Receives once into a buffer.
pub(crate) struct Recv<B> {
    lane: Inbound<Received>,
    buffer: B,
}

impl<B: IoBufMut> Recv<B> {
    pub(crate) fn new(lane: Inbound<Received>, buffer: B) -> Recv<B> {
        Recv { lane, buffer }
    }

    /// Notes the received bytes in the buffer. Returns how many.
    fn received(&mut self, outcome: Outcome) -> io::Result<usize> {
        let has_more = outcome.flags.contains(Flags::SOCKET_NONEMPTY);
        self.lane.with_kept(|kept| kept.note_rest(has_more));
        let count = outcome.into_result()? as usize;
        debug_assert!(
            count <= self.buffer.capacity(),
            "the kernel received {count} bytes, more than asked for"
        );
        // SAFETY: the kernel wrote that many bytes from the start of the buffer, and was told its capacity.
        unsafe { self.buffer.set_len(count) };
        Ok(count)
    }
}

// SAFETY: the address is the buffer's. `IoBufMut` promises that it stays valid and exclusive while the payload is
// untouched.
unsafe impl<B: IoBufMut> Operation for Recv<B> {
    type Output = BufResult<usize, B>;

    const NAME: &'static str = "recv";

    fn entry(&mut self) -> EntryKind {
        let is_drained = self.lane.with_kept(|kept| kept.is_drained());
        EntryKind::Recv {
            fd: self.lane.fd(),
            ptr: self.buffer.as_mut_ptr(),
            len: transfer_len(self.buffer.capacity()),
            attempt: if is_drained {
                Attempt::WhenReadable
            } else {
                Attempt::AtOnce
            },
        }
    }

    fn complete(mut self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(|outcome| self.received(outcome));
        (result, self.buffer)
    }

    /// Keeps the received bytes for the next receive.
    fn orphan(mut self, outcome: Outcome) {
        if let Ok(count @ 1..) = self.received(outcome) {
            let bytes = initialised(&self.buffer)[..count].to_vec();
            self.lane
                .with_kept(|kept| kept.push(PooledBuf::from_heap(bytes)));
        }
    }
}
