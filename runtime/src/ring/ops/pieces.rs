//! The buffers a message is gathered from or scattered into: one, or several in order.
#![expect(
    unsafe_code,
    reason = "states what a list of pieces promises to the kernel, and notes what the kernel wrote"
)]

use crate::ring::buffer::{IoBuf, IoBufMut, fill, initialised};

/// The kernel takes at most this many pieces in one message or transfer.
pub(crate) const PIECES_MAX: usize = 1024;

/// Buffers that a message is sent from, in order.
///
/// # Safety
///
/// While the value is neither moved, mutated nor dropped, the pieces that [`list`](Self::list) adds are valid for
/// reads, and nobody writes to them.
pub(crate) unsafe trait Gather: 'static {
    /// How many pieces there are.
    fn piece_count(&self) -> usize;

    /// How many bytes they hold.
    fn total_len(&self) -> usize;

    /// Adds where the bytes are.
    fn list(&self, pieces: &mut Vec<libc::iovec>);
}

/// Buffers that a message is received into, in order.
///
/// # Safety
///
/// While the value is neither moved nor dropped, the pieces that [`list`](Self::list) adds are valid for writes that
/// nobody else reads or writes, and together they are [`room`](Self::room) bytes long.
pub(crate) unsafe trait Scatter: 'static {
    /// How many pieces there are.
    fn piece_count(&self) -> usize;

    /// How many bytes they have room for.
    fn room(&self) -> usize;

    /// Adds where the room is.
    fn list(&mut self, pieces: &mut Vec<libc::iovec>);

    /// Notes that a message has filled the first `len` bytes.
    ///
    /// # Safety
    ///
    /// They are initialised, and `len` is at most the room.
    unsafe fn set_filled(&mut self, len: usize);

    /// Copies the first `len` of the filled bytes.
    fn copy_out(&self, len: usize) -> Vec<u8>;

    /// Fills the buffers with as many of the bytes as fit. Returns how many.
    fn copy_in(&mut self, bytes: &[u8]) -> usize;
}

/// A message in one buffer.
#[derive(Debug)]
pub(crate) struct Single<B>(pub(crate) B);

// SAFETY: the one piece is the buffer's initialised bytes, for which `IoBuf` promises this.
unsafe impl<B: IoBuf> Gather for Single<B> {
    fn piece_count(&self) -> usize {
        1
    }

    fn total_len(&self) -> usize {
        self.0.len()
    }

    fn list(&self, pieces: &mut Vec<libc::iovec>) {
        pieces.push(readable(&self.0));
    }
}

// SAFETY: the one piece is the buffer's capacity, for which `IoBufMut` promises this.
unsafe impl<B: IoBufMut> Scatter for Single<B> {
    fn piece_count(&self) -> usize {
        1
    }

    fn room(&self) -> usize {
        self.0.capacity()
    }

    fn list(&mut self, pieces: &mut Vec<libc::iovec>) {
        pieces.push(writable(&mut self.0));
    }

    unsafe fn set_filled(&mut self, len: usize) {
        // SAFETY: initialised and within the capacity, by this function's contract.
        unsafe { self.0.set_len(len) };
    }

    fn copy_out(&self, len: usize) -> Vec<u8> {
        initialised(&self.0)[..len].to_vec()
    }

    fn copy_in(&mut self, bytes: &[u8]) -> usize {
        fill(&mut self.0, bytes)
    }
}

// SAFETY: the pieces are the buffers' initialised bytes, for which `IoBuf` promises this; bytes that are part of a
// buffer are in the vector's memory, which stays in place while the vector is not mutated.
unsafe impl<B: IoBuf> Gather for Vec<B> {
    fn piece_count(&self) -> usize {
        self.len()
    }

    fn total_len(&self) -> usize {
        self.iter()
            .fold(0, |sum, buffer| sum.saturating_add(buffer.len()))
    }

    fn list(&self, pieces: &mut Vec<libc::iovec>) {
        pieces.extend(self.iter().map(readable));
    }
}

// SAFETY: the pieces are the buffers' capacities, for which `IoBufMut` promises this; bytes that are part of a buffer
// are in the vector's memory, which stays in place while the vector is not mutated.
unsafe impl<B: IoBufMut> Scatter for Vec<B> {
    fn piece_count(&self) -> usize {
        self.len()
    }

    fn room(&self) -> usize {
        self.iter()
            .fold(0, |sum, buffer| sum.saturating_add(buffer.capacity()))
    }

    fn list(&mut self, pieces: &mut Vec<libc::iovec>) {
        pieces.extend(self.iter_mut().map(writable));
    }

    unsafe fn set_filled(&mut self, len: usize) {
        let mut rest = len;
        for buffer in self {
            let part = rest.min(buffer.capacity());
            // SAFETY: initialised by this function's contract, as the pieces are filled in order; within the capacity.
            unsafe { buffer.set_len(part) };
            rest -= part;
        }
    }

    fn copy_out(&self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        for buffer in self {
            let part = buffer.len().min(len - bytes.len());
            bytes.extend_from_slice(&initialised(buffer)[..part]);
        }
        bytes
    }

    fn copy_in(&mut self, bytes: &[u8]) -> usize {
        let mut count = 0;
        for buffer in self {
            count += fill(buffer, &bytes[count..]);
        }
        count
    }
}

/// Lists where the bytes of the buffers are but for the first `skip`, as far as one call takes them.
pub(super) fn list_rest(buffers: &[impl IoBuf], mut skip: usize, pieces: &mut Vec<libc::iovec>) {
    pieces.clear();
    for buffer in buffers {
        let skipped = skip.min(buffer.len());
        skip -= skipped;
        if skipped < buffer.len() && pieces.len() < PIECES_MAX {
            pieces.push(libc::iovec {
                iov_base: buffer.as_ptr().wrapping_add(skipped).cast_mut().cast(),
                iov_len: buffer.len() - skipped,
            });
        }
    }
}

fn readable(buffer: &impl IoBuf) -> libc::iovec {
    libc::iovec {
        iov_base: buffer.as_ptr().cast_mut().cast(),
        iov_len: buffer.len(),
    }
}

pub(super) fn writable(buffer: &mut impl IoBufMut) -> libc::iovec {
    libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.capacity(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_spread_over_the_buffers_in_order() {
        let mut buffers = vec![
            Vec::with_capacity(2),
            vec![9_u8; 1],
            Vec::with_capacity(8),
            vec![7; 3],
        ];
        assert_eq!(buffers.copy_in(b"abcdef"), 6);
        assert_eq!(
            buffers,
            [b"ab".to_vec(), b"c".to_vec(), b"def".to_vec(), Vec::new()]
        );
        assert_eq!(buffers.copy_out(5), b"abcde");
        assert_eq!(buffers.total_len(), 6);
    }

    #[test]
    fn what_does_not_fit_is_left() {
        let mut buffers = vec![[0_u8; 2]; 2];
        assert_eq!(buffers.copy_in(b"abcdef"), 4);
        assert_eq!(buffers, [*b"ab", *b"cd"]);
        assert_eq!(Single([0_u8; 3]).copy_in(b"abcdef"), 3);
    }
}
