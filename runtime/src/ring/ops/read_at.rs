//! Reading from a position of a file.
#![expect(
    unsafe_code,
    reason = "hands out the address of its own buffer, and notes what the kernel wrote"
)]

use std::io;
use std::os::fd::AsRawFd;

use crate::ring::backend::EntryKind;
use crate::ring::buffer::{BufResult, IoBufMut, transfer_len};
use crate::ring::file::FileRef;
use crate::ring::op::{Operation, Outcome};

/// Reads once into a buffer.
pub(crate) struct ReadAt<B> {
    file: FileRef,
    buffer: B,
    offset: u64,
}

impl<B: IoBufMut> ReadAt<B> {
    pub(crate) fn new(file: FileRef, buffer: B, offset: u64) -> ReadAt<B> {
        ReadAt {
            file,
            buffer,
            offset,
        }
    }
}

// SAFETY: the address is the buffer's. `IoBufMut` promises that it stays valid and exclusive while the payload is
// untouched.
unsafe impl<B: IoBufMut> Operation for ReadAt<B> {
    type Output = BufResult<usize, B>;

    const NAME: &'static str = "read from a file";

    fn entry(&mut self) -> EntryKind {
        EntryKind::ReadAt {
            fd: self.file.as_raw_fd(),
            ptr: self.buffer.as_mut_ptr(),
            len: transfer_len(self.buffer.capacity()),
            offset: self.offset,
        }
    }

    fn complete(mut self, outcome: io::Result<Outcome>) -> Self::Output {
        let count = match outcome.and_then(Outcome::into_result) {
            Ok(count) => count as usize,
            Err(error) => return (Err(error), self.buffer),
        };
        debug_assert!(
            count <= self.buffer.capacity(),
            "the kernel read {count} bytes, more than asked for"
        );
        // SAFETY: the kernel wrote that many bytes from the start of the buffer, and was told its capacity.
        unsafe { self.buffer.set_len(count) };
        (Ok(count), self.buffer)
    }

    /// What was read can be read again.
    fn orphan(self, _outcome: Outcome) {}
}
