//! Memory for transfers that go past the page cache.
#![expect(unsafe_code, reason = "owns memory of a chosen alignment")]

use std::alloc::{self, Layout};
use std::error::Error;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

use super::metadata::DirectAlignment;
use crate::buffer::{IoBuf, IoBufMut};

/// A buffer at an address that is a multiple of a chosen alignment.
///
/// Files opened with `O_DIRECT` ask for one; [`Metadata::direct_alignment`](super::Metadata::direct_alignment) tells
/// which. Its capacity is a multiple of the alignment too and never changes. The length is that of what was read or put
/// into it.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::fs::AlignedBuf;
///
/// let mut buffer = AlignedBuf::with_capacity(8192, 4096)?;
/// assert_eq!(buffer.append(b"first"), 5);
/// buffer.resize(4096, 0);
/// assert_eq!(buffer.as_ptr().addr() % 4096, 0);
/// assert_eq!((buffer.len(), buffer.capacity()), (4096, 8192));
///
/// let error = AlignedBuf::with_capacity(1000, 512).unwrap_err();
/// assert!(error.to_string().contains("1000 bytes are no multiple of 512: ask for 1024"));
/// # Ok::<(), greenroom_runtime::fs::AlignedBufError>(())
/// ```
pub struct AlignedBuf {
    /// Invariant: allocated with `layout`, or dangling if its size is zero. The first `len` bytes are initialised.
    memory: NonNull<u8>,
    layout: Layout,
    /// Invariant: at most the size of `layout`.
    len: usize,
}

// SAFETY: owns its bytes, which are plain memory, and lets them out by the usual rules of borrowing only.
unsafe impl Send for AlignedBuf {}
// SAFETY: through a shared reference the bytes can only be read.
unsafe impl Sync for AlignedBuf {}

/// Why there is no [`AlignedBuf`] of that shape.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlignedBufError {
    /// The alignment is not a power of two.
    Alignment {
        /// What was asked for.
        alignment: usize,
    },
    /// The capacity is not a multiple of the alignment.
    Capacity {
        /// What was asked for.
        capacity: usize,
        /// What it has to be a multiple of.
        alignment: usize,
    },
    /// There is not so much memory.
    OutOfMemory {
        /// What was asked for.
        capacity: usize,
    },
}

impl AlignedBuf {
    /// Makes an empty buffer.
    ///
    /// # Errors
    ///
    /// If the alignment is not a power of two, the capacity not a multiple of it, or the memory not there.
    pub fn with_capacity(capacity: usize, alignment: usize) -> Result<AlignedBuf, AlignedBufError> {
        if !alignment.is_power_of_two() {
            return Err(AlignedBufError::Alignment { alignment });
        }
        if !capacity.is_multiple_of(alignment) {
            return Err(AlignedBufError::Capacity {
                capacity,
                alignment,
            });
        }
        let no_memory = AlignedBufError::OutOfMemory { capacity };
        let Ok(layout) = Layout::from_size_align(capacity, alignment) else {
            return Err(no_memory);
        };
        let memory = if capacity == 0 {
            NonNull::new(ptr::without_provenance_mut(alignment))
        } else {
            // SAFETY: the size is not zero.
            NonNull::new(unsafe { alloc::alloc(layout) })
        };
        Ok(AlignedBuf {
            memory: memory.ok_or(no_memory)?,
            layout,
            len: 0,
        })
    }

    /// Makes an empty buffer for direct transfers: of at least this capacity, and aligned as the file asks.
    ///
    /// # Errors
    ///
    /// If the memory is not there.
    pub fn for_direct(
        capacity: usize,
        alignment: DirectAlignment,
    ) -> Result<AlignedBuf, AlignedBufError> {
        // Both are powers of two, so the larger one is a multiple of the other.
        let unit = alignment.memory.max(alignment.offset);
        let rounded = capacity.checked_next_multiple_of(unit);
        let rounded = rounded.ok_or(AlignedBufError::OutOfMemory { capacity })?;
        AlignedBuf::with_capacity(rounded, unit)
    }

    /// Returns what its address is a multiple of.
    #[must_use]
    pub fn alignment(&self) -> usize {
        self.layout.align()
    }

    /// Returns how many bytes it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.layout.size()
    }

    /// Puts bytes behind those that are in it, as many as there is room for. Returns how many.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.capacity() - self.len);
        // SAFETY: `len + count` is at most the capacity, so the target lies within the memory, which nobody else can
        // refer to while `self` is borrowed for writing.
        unsafe {
            let end = self.memory.as_ptr().add(self.len);
            end.copy_from_nonoverlapping(bytes.as_ptr(), count);
        }
        self.len += count;
        count
    }

    /// Sets the length, no further than the capacity: cuts off, or fills up with `value`.
    pub fn resize(&mut self, len: usize, value: u8) {
        let len = len.min(self.capacity());
        if let Some(more) = len.checked_sub(self.len) {
            // SAFETY: `len` is at most the capacity, so the bytes from the old length to it lie within the memory.
            unsafe { self.memory.as_ptr().add(self.len).write_bytes(value, more) };
        }
        self.len = len;
    }

    /// Makes it empty.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialised; the borrow of `self` lasts as long as the slice.
        unsafe { slice::from_raw_parts(self.memory.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first `len` bytes are initialised; the unique borrow of `self` lasts as long as the slice.
        unsafe { slice::from_raw_parts_mut(self.memory.as_ptr(), self.len) }
    }
}

// SAFETY: the bytes are on the heap, its own, and initialised up to its length.
unsafe impl IoBuf for AlignedBuf {
    fn as_ptr(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    fn len(&self) -> usize {
        self.len
    }
}

// SAFETY: the bytes are on the heap, its own, and writable up to its capacity, which never changes.
unsafe impl IoBufMut for AlignedBuf {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.memory.as_ptr()
    }

    fn capacity(&self) -> usize {
        AlignedBuf::capacity(self)
    }

    unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(
            len <= self.capacity(),
            "a length of {len} for a capacity of {}",
            self.capacity()
        );
        self.len = len;
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated with this very layout, and freed once.
            unsafe { alloc::dealloc(self.memory.as_ptr(), self.layout) };
        }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuf")
            .field("len", &self.len)
            .field("capacity", &self.capacity())
            .field("alignment", &self.alignment())
            .finish()
    }
}

impl fmt::Display for AlignedBufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            AlignedBufError::Alignment { alignment } => write!(
                f,
                "an alignment of {alignment} is no power of two: ask for 512 or 4096, or what the file's metadata says"
            ),
            AlignedBufError::Capacity {
                capacity,
                alignment,
            } => {
                write!(f, "{capacity} bytes are no multiple of {alignment}")?;
                match capacity.checked_next_multiple_of(alignment) {
                    Some(next) => write!(f, ": ask for {next}"),
                    None => f.write_str(": ask for fewer"),
                }
            }
            AlignedBufError::OutOfMemory { capacity } => {
                write!(f, "there is no memory for {capacity} bytes: ask for fewer")
            }
        }
    }
}

impl Error for AlignedBufError {}

impl From<AlignedBufError> for io::Error {
    fn from(error: AlignedBufError) -> io::Error {
        let kind = match error {
            AlignedBufError::Alignment { .. } | AlignedBufError::Capacity { .. } => {
                io::ErrorKind::InvalidInput
            }
            AlignedBufError::OutOfMemory { .. } => io::ErrorKind::OutOfMemory,
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_and_the_capacity_are_multiples_of_the_alignment() {
        for alignment in [1, 16, 512, 4096, 1 << 16] {
            for units in [0, 1, 3] {
                let buffer = AlignedBuf::with_capacity(alignment * units, alignment).unwrap();
                assert!(buffer.as_ptr().addr().is_multiple_of(alignment));
                assert_eq!((buffer.capacity(), buffer.len()), (alignment * units, 0));
                assert_eq!(&buffer[..], b"");
            }
        }
    }

    #[test]
    fn shapes_that_cannot_be_are_refused_with_a_cure() {
        let refused = |capacity, alignment| {
            let error = AlignedBuf::with_capacity(capacity, alignment).unwrap_err();
            (io::Error::from(error.clone()).kind(), error.to_string())
        };
        let (kind, text) = refused(4096, 1000);
        assert_eq!(kind, io::ErrorKind::InvalidInput);
        assert!(text.contains("1000 is no power of two"), "{text}");
        let (_, text) = refused(0, 0);
        assert!(text.contains("0 is no power of two"), "{text}");
        let (kind, text) = refused(4097, 4096);
        assert_eq!(kind, io::ErrorKind::InvalidInput);
        assert!(
            text.contains("4097 bytes are no multiple of 4096: ask for 8192"),
            "{text}"
        );
        let (kind, _) = refused(1 << 63, 4096);
        assert_eq!(kind, io::ErrorKind::OutOfMemory);
        let (kind, _) = refused((1 << 62) - 4096, 4096);
        assert_eq!(kind, io::ErrorKind::OutOfMemory);
        let alignment = DirectAlignment {
            memory: 4,
            offset: 512,
        };
        assert!(AlignedBuf::for_direct(usize::MAX, alignment).is_err());
        let buffer = AlignedBuf::for_direct(513, alignment).unwrap();
        assert_eq!((buffer.capacity(), buffer.alignment()), (1024, 512));
    }

    #[test]
    fn it_is_filled_no_further_than_its_capacity() {
        let mut buffer = AlignedBuf::with_capacity(8, 8).unwrap();
        assert_eq!(buffer.append(b"abcde"), 5);
        assert_eq!(buffer.append(b"fghij"), 3);
        assert_eq!(buffer.append(b"k"), 0);
        assert_eq!(&buffer[..], b"abcdefgh");
        buffer.resize(2, b'-');
        buffer.resize(100, b'+');
        assert_eq!(&buffer[..], b"ab++++++");
        buffer[0] = b'A';
        assert_eq!(&buffer[..2], b"Ab");
        buffer.clear();
        assert!(buffer.is_empty());
    }
}
