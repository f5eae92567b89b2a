//! Reading into, and writing from, several buffers at a position of a file.
#![expect(
    unsafe_code,
    reason = "hands out the addresses of its own buffers and of their list, and notes what the kernel wrote"
)]

use std::io;
use std::os::fd::AsRawFd;

use super::pieces::{PIECES_MAX, Scatter, list_rest, writable};
use crate::ring::backend::EntryKind;
use crate::ring::buffer::{BufResult, IoBuf, IoBufMut};
use crate::ring::file::FileRef;
use crate::ring::op::{Operation, Outcome};

/// Reads once into several buffers, in order.
pub(crate) struct ReadVectoredAt<B> {
    file: FileRef,
    buffers: Vec<B>,
    /// Where the buffers are. Filled when they are in place.
    pieces: Vec<libc::iovec>,
    offset: u64,
}

impl<B: IoBufMut> ReadVectoredAt<B> {
    pub(crate) fn new(file: FileRef, buffers: Vec<B>, offset: u64) -> ReadVectoredAt<B> {
        ReadVectoredAt {
            file,
            buffers,
            pieces: Vec::new(),
            offset,
        }
    }
}

// SAFETY: the list of pieces and the buffers lie in vectors that the payload owns (inline bytes of a buffer in the
// vector's memory); `IoBufMut` promises that the bytes stay valid and exclusive while the payload is untouched.
unsafe impl<B: IoBufMut> Operation for ReadVectoredAt<B> {
    type Output = BufResult<usize, Vec<B>>;

    const NAME: &'static str = "vectored read from a file";

    fn entry(&mut self) -> EntryKind {
        self.pieces.clear();
        let used = self
            .buffers
            .iter_mut()
            .filter(|buffer| buffer.capacity() > 0);
        self.pieces.extend(used.take(PIECES_MAX).map(writable));
        EntryKind::ReadVectoredAt {
            fd: self.file.as_raw_fd(),
            pieces: self.pieces.as_ptr(),
            piece_count: piece_count(&self.pieces),
            offset: self.offset,
        }
    }

    fn complete(mut self, outcome: io::Result<Outcome>) -> Self::Output {
        let count = match outcome.and_then(Outcome::into_result) {
            Ok(count) => count as usize,
            Err(error) => return (Err(error), self.buffers),
        };
        debug_assert!(
            count <= self.buffers.room(),
            "the kernel read {count} bytes, more than asked for"
        );
        // SAFETY: the kernel filled the buffers in order, each up to its capacity, with `count` bytes in total.
        unsafe { self.buffers.set_filled(count) };
        (Ok(count), self.buffers)
    }

    /// What was read can be read again.
    fn orphan(self, _outcome: Outcome) {}
}

/// Writes once from several buffers, in order.
pub(crate) struct WriteVectoredAt<B> {
    file: FileRef,
    buffers: Vec<B>,
    /// How many bytes at the front were written before.
    skip: usize,
    /// Where the rest of the bytes are. Filled when the buffers are in place.
    pieces: Vec<libc::iovec>,
    offset: u64,
}

impl<B: IoBuf> WriteVectoredAt<B> {
    pub(crate) fn new(
        file: FileRef,
        buffers: Vec<B>,
        skip: usize,
        offset: u64,
    ) -> WriteVectoredAt<B> {
        WriteVectoredAt {
            file,
            buffers,
            skip,
            pieces: Vec::new(),
            offset,
        }
    }
}

// SAFETY: the list of pieces and the buffers lie in vectors that the payload owns (inline bytes of a buffer in the
// vector's memory); `IoBuf` promises that the bytes stay valid and unwritten while the payload is untouched.
unsafe impl<B: IoBuf> Operation for WriteVectoredAt<B> {
    type Output = BufResult<usize, Vec<B>>;

    const NAME: &'static str = "vectored write to a file";

    fn entry(&mut self) -> EntryKind {
        list_rest(&self.buffers, self.skip, &mut self.pieces);
        EntryKind::WriteVectoredAt {
            fd: self.file.as_raw_fd(),
            pieces: self.pieces.as_ptr(),
            piece_count: piece_count(&self.pieces),
            offset: self.offset,
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(Outcome::into_result);
        (result.map(|count| count as usize), self.buffers)
    }

    /// What was written was written.
    fn orphan(self, _outcome: Outcome) {}
}

fn piece_count(pieces: &[libc::iovec]) -> u32 {
    u32::try_from(pieces.len()).expect("at most 1024 pieces")
}
