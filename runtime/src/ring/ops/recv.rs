//! Receiving from a socket.
#![expect(
    unsafe_code,
    reason = "hands out the address of its own buffer, and notes what the kernel wrote"
)]

use std::io;

use crate::ring::backend::{Attempt, EntryKind};
use crate::ring::buffer::{BufResult, IoBufMut, fill, initialised, transfer_len};
use crate::ring::op::{Flags, Operation, Outcome};
use crate::ring::socket::{Inbound, Kept, Socket};

/// A connected socket.
pub(crate) type StreamSocket = Socket<Received>;

/// What the receives of a socket leave for the next one.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// Bytes that a cancelled receive took.
    leftover: Vec<u8>,
    /// How many of those were given out already.
    leftover_taken: usize,
    /// Whether the last receive emptied the socket, as far as the kernel told.
    is_drained: bool,
}

impl Kept for Received {
    /// Whether bytes wait for the next receive.
    fn holds_something(&self) -> bool {
        self.leftover_taken < self.leftover.len()
    }
}

impl Received {
    /// Moves leftover bytes into the buffer. `None` if there are none.
    pub(crate) fn take(&mut self, buffer: &mut impl IoBufMut) -> Option<usize> {
        let bytes = &self.leftover[self.leftover_taken..];
        if bytes.is_empty() {
            return None;
        }
        let count = fill(buffer, bytes);
        self.leftover_taken += count;
        if self.leftover_taken == self.leftover.len() {
            self.leftover = Vec::new();
            self.leftover_taken = 0;
        }
        Some(count)
    }
}

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
        let is_drained = !outcome.flags.contains(Flags::SOCKET_NONEMPTY);
        self.lane.with_kept(|kept| kept.is_drained = is_drained);
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
        let is_drained = self.lane.with_kept(|kept| kept.is_drained);
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
            let bytes = &initialised(&self.buffer)[..count];
            self.lane
                .with_kept(|kept| kept.leftover.extend_from_slice(bytes));
        }
    }
}
