//! Memory for records that are too large for the ring.
//!
//! A record of more than 256 bytes lies in a *block*; what is in the ring is a pointer to it. Blocks belong to the writing
//! end, which uses them again, so a stream of large records allocates nothing once it has as many as it has in flight.
//!
//! # Life of a block
//! ```text
//!  allocated ──► idle ──record built──► in flight ──the reader gave the record's space back──► idle
//!                 │ another size is wanted, or the writer ends: freed
//!                 └ in flight when the writer ends: kept until the ring is dropped
//! ```
//! Nothing is sent home. The reader moves the value out of the block before it gives the space of the record in the ring
//! back, and that is one store, which the writer reads anyway: a head behind the record says that the block is free. So
//! blocks need no atomics of their own.
//!
//! # Who may touch it
//! The writer while it is idle or being built in; the reader from the publish of its record until it gives the space back.
//!
//! # Bound
//! The blocks of a ring, idle ones included, are together no larger than [`RINGS_OF_BLOCKS`] times the ring, or one
//! block if that alone is larger. A record that finds no block waits as one that finds no room in the ring.

#![expect(
    unsafe_code,
    reason = "owns memory that is handed to another thread by a pointer in a record"
)]

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// How much larger than its ring the blocks of a ring may be together.
const RINGS_OF_BLOCKS: usize = 4;
const LINE_BYTES: usize = 64;
const BLOCK_BYTES_MIN: usize = 512;
const SIZES: usize = 8;
/// Larger values than this are boxed: next to moving them, an allocation costs nothing.
const BLOCK_BYTES_MAX: usize = BLOCK_BYTES_MIN << (SIZES - 1);

/// True if a value of type `T` can lie in a block.
pub(super) const fn fits<T>() -> bool {
    align_of::<T>() <= LINE_BYTES && size_of::<T>() <= BLOCK_BYTES_MAX
}

/// The size of a block: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(usize);

impl Size {
    /// The smallest that holds a `T`, if one does.
    pub(super) const fn of<T>() -> Self {
        let mut size = 0;
        while size < SIZES - 1 && BLOCK_BYTES_MIN << size < size_of::<T>() {
            size += 1;
        }
        Self(size)
    }

    fn bytes(self) -> usize {
        BLOCK_BYTES_MIN << self.0
    }
}

#[repr(C, align(64))]
struct Line(MaybeUninit<[u8; LINE_BYTES]>);

/// Memory of one size.
pub(super) struct Block {
    /// Invariant: from `Box::into_raw` of a slice of lines of this size.
    start: NonNull<Line>,
    size: Size,
    /// For loom, which does not see raw memory: one for all that is done with the block.
    #[cfg(loom)]
    touched: std::sync::Arc<crate::primitives::UnsafeCell<()>>,
}

// SAFETY: `start` is memory that the block owns alone, as a box does, and the rest is plain data.
unsafe impl Send for Block {}

impl Block {
    fn new(size: Size) -> Self {
        let lines: Box<[MaybeUninit<Line>]> = Box::new_uninit_slice(size.bytes() / LINE_BYTES);
        let lines = Box::into_raw(lines).cast::<Line>();
        Self {
            start: NonNull::new(lines).expect("a box is not null"),
            size,
            #[cfg(loom)]
            touched: std::sync::Arc::new(crate::primitives::UnsafeCell::new(())),
        }
    }

    /// Moves a value into the block, over whatever bytes are there.
    ///
    /// # Safety
    /// * No value is in the block that somebody has yet to take, and nobody else touches its memory.
    pub(super) unsafe fn put<T: Send>(&self, value: T) -> InBlock<T> {
        assert!(
            fits::<T>() && size_of::<T>() <= self.size.bytes(),
            "a value of {} bytes in a block of {}",
            size_of::<T>(),
            self.size.bytes()
        );
        #[cfg(loom)]
        self.touched.with_mut(|_| ());
        let place = self.start.cast::<T>();
        // SAFETY: the block is large enough, as was just seen, aligned to a line, and ours by our contract.
        unsafe { place.write(value) };
        InBlock {
            value: place,
            #[cfg(loom)]
            touched: self.touched.clone(),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let lines = std::ptr::slice_from_raw_parts_mut(
            self.start.as_ptr().cast::<MaybeUninit<Line>>(),
            self.size.bytes() / LINE_BYTES,
        );
        // SAFETY: by the fields' invariant this is the slice that `new` took out of its box, and a block is dropped once.
        drop(unsafe { Box::from_raw(lines) });
    }
}

/// A value that lies in a block; what a record in the ring has instead of it.
pub(super) struct InBlock<T> {
    value: NonNull<T>,
    #[cfg(loom)]
    touched: std::sync::Arc<crate::primitives::UnsafeCell<()>>,
}

// SAFETY: it is the one way to a value that it owns, like a box.
unsafe impl<T: Send> Send for InBlock<T> {}

impl<T> InBlock<T> {
    /// Moves the value out.
    ///
    /// # Safety
    /// * The block is alive and holds the value that [`Block::put`] made this of, and all that happened before.
    pub(super) unsafe fn take(self) -> T {
        #[cfg(loom)]
        self.touched.with_mut(|_| ());
        // SAFETY: by our contract; `self` is gone after this, so the value is moved out once.
        unsafe { self.value.read() }
    }
}

/// The blocks of a writing end.
pub(super) struct Blocks {
    idle: [Vec<Block>; SIZES],
    /// Oldest first, each with the index behind its record.
    in_flight: VecDeque<(usize, Block)>,
    /// Of all blocks, idle and in flight.
    bytes: usize,
    bytes_max: usize,
    /// What the last record wanted that found no block.
    wanted: Option<Size>,
}

impl Blocks {
    pub(super) fn new(ring_bytes: usize) -> Self {
        Self {
            idle: [const { Vec::new() }; SIZES],
            in_flight: VecDeque::new(),
            bytes: 0,
            bytes_max: ring_bytes.saturating_mul(RINGS_OF_BLOCKS),
            wanted: None,
        }
    }

    /// Whether a block of this size is idle.
    #[inline]
    pub(super) fn has_idle(&self, size: Size) -> bool {
        !self.idle[size.0].is_empty()
    }

    /// Takes back the blocks of records whose space the reader has given back: those that end at `head` or before.
    #[inline]
    pub(super) fn reclaim(&mut self, head: usize) {
        // Indices wrap; they are never half of their range apart.
        while let Some((_, block)) = self
            .in_flight
            .pop_front_if(|(end, _)| head.wrapping_sub(*end) <= isize::MAX.cast_unsigned())
        {
            self.idle[block.size.0].push(block);
        }
    }

    /// Makes an idle block of this size if the bound allows it, in place of idle ones of other sizes if need be.
    #[cold]
    pub(super) fn grow(&mut self, size: Size) -> bool {
        let idle =
            |blocks: &Vec<Block>| blocks.iter().map(|block| block.size.bytes()).sum::<usize>();
        let in_use = self.bytes - self.idle.iter().map(idle).sum::<usize>();
        // One block may be larger than the bound, or nothing of its size could ever be sent.
        let allowed = in_use + size.bytes() <= self.bytes_max || in_use == 0;
        self.wanted = (!allowed).then_some(size);
        if !allowed {
            return false;
        }
        for idle in self.idle.iter_mut().rev() {
            while self.bytes + size.bytes() > self.bytes_max
                && let Some(block) = idle.pop()
            {
                self.bytes -= block.size.bytes();
            }
        }
        self.bytes += size.bytes();
        self.idle[size.0].push(Block::new(size));
        true
    }

    /// The size of the block that was last wanted and is still missing.
    pub(super) fn wanted(&self) -> Option<Size> {
        self.wanted
    }

    /// The size of all of them together.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// An idle block, to be filled.
    #[inline]
    pub(super) fn take(&mut self, size: Size) -> Block {
        self.wanted = None;
        self.idle[size.0].pop().expect("an idle block was seen")
    }

    /// The record that points to the block is in the ring, up to this index.
    #[inline]
    pub(super) fn send(&mut self, block: Block, end: usize) {
        self.in_flight.push_back((end, block));
    }

    /// Frees what is idle, and gives out what is in flight.
    pub(super) fn end(&mut self) -> impl Iterator<Item = Block> {
        self.idle.iter_mut().for_each(Vec::clear);
        std::mem::take(&mut self.in_flight)
            .into_iter()
            .map(|(_, block)| block)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Blocks, Size, fits};

    #[test]
    fn sizes_are_powers_of_two_and_hold_their_type() {
        for (size, bytes) in [
            (Size::of::<u8>(), 512),
            (Size::of::<[u8; 512]>(), 512),
            (Size::of::<[u8; 513]>(), 1024),
            (Size::of::<[u8; 65536]>(), 65536),
        ] {
            assert_eq!(size.bytes(), bytes);
        }
        assert!(fits::<[u8; 65536]>());
        assert!(!fits::<[u8; 65537]>());
    }

    #[test]
    fn blocks_come_back_when_the_head_has_passed_their_record() {
        let size = Size::of::<[u8; 600]>();
        let mut blocks = Blocks::new(4096);
        let start = usize::MAX - 31;
        for number in 0_usize..4 {
            assert!(blocks.grow(size));
            let block = blocks.take(size);
            blocks.send(block, start.wrapping_add(32 * (number + 1)));
        }
        blocks.reclaim(start);
        assert!(!blocks.has_idle(size));
        blocks.reclaim(start.wrapping_add(95));
        assert_eq!(
            blocks.idle[size.0].len(),
            2,
            "the indices went over their end"
        );
        blocks.reclaim(start.wrapping_add(128));
        assert_eq!(blocks.idle[size.0].len(), 4);
    }

    #[test]
    fn all_sizes_share_one_bound() {
        let (small, large) = (Size::of::<[u8; 512]>(), Size::of::<[u8; 8192]>());
        let mut blocks = Blocks::new(4096);
        for _ in 0..32 {
            assert!(blocks.grow(small));
        }
        assert!(blocks.grow(large), "idle ones make room");
        assert_eq!(blocks.bytes(), 4 * 4096);
        for _ in 0..16 {
            let block = blocks.take(small);
            blocks.send(block, 0);
        }
        let huge = Size::of::<[u8; 16384]>();
        assert!(!blocks.grow(huge));
        assert_eq!(blocks.wanted(), Some(huge));
        assert_eq!(
            blocks.bytes(),
            4 * 4096,
            "an idle one does not make room in vain"
        );
    }

    #[test]
    fn one_block_may_be_larger_than_the_bound() {
        let huge = Size::of::<[u8; 65536]>();
        let mut blocks = Blocks::new(4096);
        assert!(blocks.grow(huge));
        let block = blocks.take(huge);
        blocks.send(block, 16);
        assert!(!blocks.grow(huge));
        blocks.reclaim(16);
        assert!(blocks.has_idle(huge));
        assert_eq!(blocks.end().count(), 0);
    }
}
