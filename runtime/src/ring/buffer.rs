//! Buffers an operation can own while the kernel works on them.
//!
//! An operation takes its buffer by value and gives it back with the result. There is no way to lend a slice: a
//! future can be forgotten at any await, and the kernel would go on writing into memory whose owner moved on.
#![expect(
    unsafe_code,
    reason = "states and implements the contract for memory the kernel reads and writes"
)]

use std::fmt;
use std::io;
use std::ops::{Bound, Deref, DerefMut, RangeBounds};
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

pub use super::pooled::PooledBuf;

/// What an operation on a buffer yields: its result, and the buffer back.
pub type BufResult<T, B> = (io::Result<T>, B);

/// The kernel moves at most this many bytes in one call.
const TRANSFER_MAX: u32 = 0x7fff_f000;

/// A length as the kernel takes it. Longer buffers are transferred in part, which the result tells.
pub(super) fn transfer_len(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX).min(TRANSFER_MAX)
}

/// An owned buffer the kernel can read from.
///
/// # Safety
///
/// While the value is neither moved, mutated nor dropped,
///
/// * [`as_ptr`](Self::as_ptr) returns the same address each time, valid for reads of [`len`](Self::len) initialised
///   bytes, and nobody writes to those bytes;
/// * neither method panics or calls into the runtime.
///
/// The memory may be part of the value itself: an operation asks for the address once the value is in its final
/// place.
pub unsafe trait IoBuf: 'static {
    /// The address of the first byte.
    fn as_ptr(&self) -> *const u8;

    /// The number of initialised bytes.
    fn len(&self) -> usize;

    /// Whether no byte is initialised.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Restricts operations to a part of the buffer.
    ///
    /// The start must lie within the initialised bytes. The end may lie in the capacity beyond them, which a read
    /// then fills; without one the slice reaches to the end of the capacity.
    ///
    /// # Panics
    ///
    /// If the range is out of order, or starts behind the initialised bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use greenroom_runtime::buffer::IoBuf;
    ///
    /// let header = vec![1_u8, 2, 3, 4].slice(1..3);
    /// assert_eq!(&header[..], [2, 3]);
    /// assert_eq!(header.into_inner(), [1, 2, 3, 4]);
    /// ```
    #[track_caller]
    fn slice(self, range: impl RangeBounds<usize>) -> Slice<Self>
    where
        Self: Sized,
    {
        let begin = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before
                .checked_add(1)
                .expect("a range that starts within memory"),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last
                .checked_add(1)
                .expect("a range that ends within memory"),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => usize::MAX,
        };
        let len = self.len();
        assert!(begin <= end, "slice starts at {begin} but ends at {end}");
        assert!(
            begin <= len,
            "slice starts at {begin} but only {len} bytes are initialised"
        );
        Slice {
            buffer: self,
            begin,
            end,
        }
    }
}

/// An owned buffer the kernel can write to.
///
/// # Safety
///
/// While the value is neither moved nor dropped,
///
/// * [`as_mut_ptr`](Self::as_mut_ptr) returns the same address each time, equal to [`as_ptr`](IoBuf::as_ptr), valid for
///   reads and writes of [`capacity`](Self::capacity) bytes that nobody else reads or writes;
/// * `capacity` is at least `len`, and stays as it is;
/// * none of the methods panics or calls into the runtime.
pub unsafe trait IoBufMut: IoBuf {
    /// The address of the first byte, for writing.
    fn as_mut_ptr(&mut self) -> *mut u8;

    /// The number of bytes there is room for, initialised or not.
    fn capacity(&self) -> usize;

    /// Notes that a transfer has filled the first `len` bytes.
    ///
    /// A buffer whose length can change has exactly that length then: a vector of 10 bytes that 3 were read into is 3
    /// bytes long, so what is in it is what was read. A [`Slice`] keeps what its buffer has behind it.
    ///
    /// # Safety
    ///
    /// The first `len` bytes are initialised, and `len` is at most the capacity.
    unsafe fn set_len(&mut self, len: usize);
}

// SAFETY: a vector's bytes are on the heap, its own, and initialised up to its length.
unsafe impl IoBuf for Vec<u8> {
    fn as_ptr(&self) -> *const u8 {
        Vec::as_ptr(self)
    }

    fn len(&self) -> usize {
        Vec::len(self)
    }
}

// SAFETY: a vector's bytes are on the heap, its own, and writable up to its capacity.
unsafe impl IoBufMut for Vec<u8> {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        Vec::as_mut_ptr(self)
    }

    fn capacity(&self) -> usize {
        Vec::capacity(self)
    }

    unsafe fn set_len(&mut self, len: usize) {
        // SAFETY: initialised and within the capacity by this function's contract.
        unsafe { Vec::set_len(self, len) };
    }
}

// SAFETY: the box owns its bytes, all of them initialised.
unsafe impl IoBuf for Box<[u8]> {
    fn as_ptr(&self) -> *const u8 {
        <[u8]>::as_ptr(self)
    }

    fn len(&self) -> usize {
        <[u8]>::len(self)
    }
}

// SAFETY: the box owns its bytes, so nobody else reaches them.
unsafe impl IoBufMut for Box<[u8]> {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        <[u8]>::as_mut_ptr(self)
    }

    fn capacity(&self) -> usize {
        <[u8]>::len(self)
    }

    unsafe fn set_len(&mut self, _len: usize) {}
}

// SAFETY: the bytes are part of the value, initialised, and in place while the value is.
unsafe impl<const N: usize> IoBuf for [u8; N] {
    fn as_ptr(&self) -> *const u8 {
        <[u8]>::as_ptr(self)
    }

    fn len(&self) -> usize {
        N
    }
}

// SAFETY: the bytes are part of the value, so nobody else reaches them.
unsafe impl<const N: usize> IoBufMut for [u8; N] {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        <[u8]>::as_mut_ptr(self)
    }

    fn capacity(&self) -> usize {
        N
    }

    unsafe fn set_len(&mut self, _len: usize) {}
}

// SAFETY: a string's bytes are on the heap, its own, and initialised up to its length.
unsafe impl IoBuf for String {
    fn as_ptr(&self) -> *const u8 {
        str::as_ptr(self)
    }

    fn len(&self) -> usize {
        str::len(self)
    }
}

// SAFETY: valid, initialised and immutable for ever.
unsafe impl IoBuf for &'static [u8] {
    fn as_ptr(&self) -> *const u8 {
        <[u8]>::as_ptr(self)
    }

    fn len(&self) -> usize {
        <[u8]>::len(self)
    }
}

// SAFETY: valid, initialised and immutable for ever.
unsafe impl IoBuf for &'static str {
    fn as_ptr(&self) -> *const u8 {
        str::as_ptr(self)
    }

    fn len(&self) -> usize {
        str::len(self)
    }
}

// SAFETY: the bytes are initialised, kept alive by this reference, and immutable while a second one may exist: `u8`
// has no interior mutability, and `Rc::get_mut` needs to mutate this very value.
unsafe impl IoBuf for Rc<[u8]> {
    fn as_ptr(&self) -> *const u8 {
        <[u8]>::as_ptr(self)
    }

    fn len(&self) -> usize {
        <[u8]>::len(self)
    }
}

// SAFETY: the bytes are initialised, kept alive by this reference, and immutable while a second one may exist: `u8`
// has no interior mutability, and `Arc::get_mut` needs to mutate this very value.
unsafe impl IoBuf for Arc<[u8]> {
    fn as_ptr(&self) -> *const u8 {
        <[u8]>::as_ptr(self)
    }

    fn len(&self) -> usize {
        <[u8]>::len(self)
    }
}

// SAFETY: the bytes are initialised, in place while the value is, and nobody else's: a buffer is lent once.
unsafe impl IoBuf for PooledBuf {
    fn as_ptr(&self) -> *const u8 {
        <[u8]>::as_ptr(self)
    }

    fn len(&self) -> usize {
        <[u8]>::len(self)
    }
}

/// A part of an owned buffer, made by [`IoBuf::slice`].
#[derive(Clone)]
pub struct Slice<B> {
    buffer: B,
    /// Invariant: at most `buffer.len()` when made; a buffer's length does not shrink while it is in here.
    begin: usize,
    /// Invariant: at least `begin`. May exceed the buffer: then the buffer's own end counts.
    end: usize,
}

impl<B> Slice<B> {
    /// The whole buffer back.
    pub fn into_inner(self) -> B {
        self.buffer
    }

    /// The whole buffer.
    pub fn get_ref(&self) -> &B {
        &self.buffer
    }

    /// The start of the slice within the buffer.
    pub fn begin(&self) -> usize {
        self.begin
    }
}

// SAFETY: forwards to the buffer. The start is within its initialised bytes and the length reaches no further than
// they do.
unsafe impl<B: IoBuf> IoBuf for Slice<B> {
    fn as_ptr(&self) -> *const u8 {
        self.buffer.as_ptr().wrapping_add(self.begin)
    }

    fn len(&self) -> usize {
        self.buffer.len().min(self.end).saturating_sub(self.begin)
    }
}

// SAFETY: forwards to the buffer. The start is within its capacity and the slice's capacity reaches no further than
// the buffer's does.
unsafe impl<B: IoBufMut> IoBufMut for Slice<B> {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.buffer.as_mut_ptr().wrapping_add(self.begin)
    }

    fn capacity(&self) -> usize {
        self.buffer
            .capacity()
            .min(self.end)
            .saturating_sub(self.begin)
    }

    unsafe fn set_len(&mut self, len: usize) {
        if self.begin + len > self.buffer.len() {
            // SAFETY: the bytes before `begin` are initialised by the invariant, the `len` behind it by the contract.
            unsafe { self.buffer.set_len(self.begin + len) };
        }
    }
}

impl<B: IoBuf> Deref for Slice<B> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        initialised(self)
    }
}

impl<B: IoBufMut> DerefMut for Slice<B> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = self.len();
        // SAFETY: `IoBufMut` promises that the initialised bytes are valid and ours alone; the borrow of `self` lasts
        // as long as the slice.
        unsafe { slice::from_raw_parts_mut(self.as_mut_ptr(), len) }
    }
}

impl<B: fmt::Debug> fmt::Debug for Slice<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slice")
            .field("buffer", &self.buffer)
            .field("begin", &self.begin)
            .field("end", &self.end)
            .finish()
    }
}

/// The initialised bytes of a buffer.
pub(super) fn initialised(buffer: &impl IoBuf) -> &[u8] {
    // SAFETY: `IoBuf` promises that the bytes are valid and initialised and that nobody writes to them; the borrow of
    // the buffer lasts as long as the slice.
    unsafe { slice::from_raw_parts(buffer.as_ptr(), buffer.len()) }
}

/// Copies as many of `bytes` into the buffer as fit, from its start. Returns how many.
pub(super) fn fill(buffer: &mut impl IoBufMut, bytes: &[u8]) -> usize {
    let count = bytes.len().min(buffer.capacity());
    // SAFETY: `count` bytes are readable at the source and, being within the capacity, writable at the target. The
    // target is ours alone by the contract of `IoBufMut`, so the two do not overlap.
    unsafe {
        buffer
            .as_mut_ptr()
            .copy_from_nonoverlapping(bytes.as_ptr(), count);
    }
    // SAFETY: just written, and within the capacity.
    unsafe { buffer.set_len(count) };
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_as_long_as_what_was_read_into_it() {
        let mut buffer = Vec::with_capacity(8);
        assert_eq!(fill(&mut buffer, b"abcd"), 4);
        assert_eq!(fill(&mut buffer, b"xy"), 2);
        assert_eq!(buffer, b"xy");
    }

    #[test]
    fn slice_fills_its_own_part_only() {
        let mut part = vec![0_u8; 6].slice(2..4);
        assert_eq!(part.capacity(), 2);
        assert_eq!(fill(&mut part, b"abcdef"), 2);
        assert_eq!(part.into_inner(), [0, 0, b'a', b'b', 0, 0]);
    }

    #[test]
    fn open_slice_reaches_into_the_capacity() {
        let mut buffer = Vec::with_capacity(16);
        buffer.extend_from_slice(b"head");
        let mut tail = buffer.slice(4..);
        assert_eq!(tail.len(), 0);
        assert!(tail.capacity() >= 12);
        assert_eq!(fill(&mut tail, b"body"), 4);
        assert_eq!(tail.into_inner(), b"headbody");
    }

    #[test]
    fn nested_slices_add_up() {
        let inner = (*b"0123456789").slice(2..9).slice(1..=3);
        assert_eq!(&inner[..], b"345");
    }

    #[test]
    #[should_panic(expected = "only 0 bytes are initialised")]
    fn slice_may_not_start_in_uninitialised_bytes() {
        let _slice = Vec::<u8>::with_capacity(8).slice(1..);
    }

    #[test]
    fn lengths_are_clamped_to_what_the_kernel_moves() {
        assert_eq!(transfer_len(17), 17);
        assert_eq!(transfer_len(usize::MAX), TRANSFER_MAX);
    }
}
