//! Reading and writing a file without positions, such as an end of a pipe.
#![expect(
    unsafe_code,
    reason = "hands out the addresses of its own buffers, and notes what the kernel wrote"
)]

use std::io;

use crate::ring::backend::EntryKind;
use crate::ring::buffer::{BufResult, IoBuf, IoBufMut, initialised, transfer_len};
use crate::ring::op::{Operation, Outcome};
use crate::ring::pooled::PooledBuf;
use crate::ring::received::Received;
use crate::ring::socket::{Inbound, Outbound};

/// Reads once into a buffer.
pub(crate) struct ReadPipe<B> {
    lane: Inbound<Received>,
    buffer: B,
}

impl<B: IoBufMut> ReadPipe<B> {
    pub(crate) fn new(lane: Inbound<Received>, buffer: B) -> ReadPipe<B> {
        ReadPipe { lane, buffer }
    }

    /// Notes the bytes in the buffer. Returns how many.
    fn received(&mut self, outcome: Outcome) -> io::Result<usize> {
        let count = outcome.into_result()? as usize;
        debug_assert!(
            count <= self.buffer.capacity(),
            "the kernel read {count} bytes, more than asked for"
        );
        // SAFETY: the kernel wrote that many bytes from the start of the buffer, and was told its capacity.
        unsafe { self.buffer.set_len(count) };
        Ok(count)
    }
}

// SAFETY: the address is the buffer's. `IoBufMut` promises that it stays valid and exclusive while the payload is
// untouched.
unsafe impl<B: IoBufMut> Operation for ReadPipe<B> {
    type Output = BufResult<usize, B>;

    const NAME: &'static str = "read pipe";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Read {
            fd: self.lane.fd(),
            ptr: self.buffer.as_mut_ptr(),
            len: transfer_len(self.buffer.capacity()),
        }
    }

    fn complete(mut self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(|outcome| self.received(outcome));
        (result, self.buffer)
    }

    /// Keeps the bytes for the next read.
    fn orphan(mut self, outcome: Outcome) {
        if let Ok(count @ 1..) = self.received(outcome) {
            let bytes = initialised(&self.buffer)[..count].to_vec();
            self.lane
                .with_kept(|kept| kept.push(PooledBuf::from_heap(bytes)));
        }
    }
}

/// Writes once from a buffer.
pub(crate) struct WritePipe<B> {
    lane: Outbound<Received>,
    buffer: B,
}

impl<B: IoBuf> WritePipe<B> {
    pub(crate) fn new(lane: Outbound<Received>, buffer: B) -> WritePipe<B> {
        WritePipe { lane, buffer }
    }
}

// SAFETY: the address is the buffer's. `IoBuf` promises that it stays valid and unwritten while the payload is
// untouched.
unsafe impl<B: IoBuf> Operation for WritePipe<B> {
    type Output = BufResult<usize, B>;

    const NAME: &'static str = "write pipe";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Write {
            fd: self.lane.fd(),
            ptr: self.buffer.as_ptr(),
            len: transfer_len(self.buffer.len()),
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(Outcome::into_result);
        (result.map(|count| count as usize), self.buffer)
    }

    /// What was written was written.
    fn orphan(self, _outcome: Outcome) {}
}
