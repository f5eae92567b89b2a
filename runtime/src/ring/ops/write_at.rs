//! Writing to a position of a file.
#![expect(unsafe_code, reason = "hands out the address of its own buffer")]

use std::io;
use std::os::fd::AsRawFd;

use crate::ring::backend::EntryKind;
use crate::ring::buffer::{BufResult, IoBuf, transfer_len};
use crate::ring::file::FileRef;
use crate::ring::op::{Operation, Outcome};

/// Writes once from a buffer.
pub(crate) struct WriteAt<B> {
    file: FileRef,
    buffer: B,
    offset: u64,
}

impl<B: IoBuf> WriteAt<B> {
    pub(crate) fn new(file: FileRef, buffer: B, offset: u64) -> WriteAt<B> {
        WriteAt {
            file,
            buffer,
            offset,
        }
    }
}

// SAFETY: the address is the buffer's. `IoBuf` promises that it stays valid and unwritten while the payload is
// untouched.
unsafe impl<B: IoBuf> Operation for WriteAt<B> {
    type Output = BufResult<usize, B>;

    const NAME: &'static str = "write to a file";

    fn entry(&mut self) -> EntryKind {
        EntryKind::WriteAt {
            fd: self.file.as_raw_fd(),
            ptr: self.buffer.as_ptr(),
            len: transfer_len(self.buffer.len()),
            offset: self.offset,
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(Outcome::into_result);
        (result.map(|count| count as usize), self.buffer)
    }

    /// What was written was written.
    fn orphan(self, _outcome: Outcome) {}
}
