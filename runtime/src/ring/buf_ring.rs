//! The ring through which the kernel is given receive buffers.
//!
//! An array of entries (address, length, number) in memory that both sides see. We write an entry and then move the
//! tail; the kernel takes entries at its own head, which nobody sees. There is one entry for each buffer, so the ring
//! cannot overflow: a buffer is either in it, or taken.
#![expect(
    unsafe_code,
    reason = "writes to memory that is shared with the kernel"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::op::BufferId;

/// The ring starts at the start of a page.
const PAGE: usize = 4096;

/// A ring of receive buffers for the kernel to take.
pub(super) struct BufRing {
    /// Invariant: `count` zeroed entries of one allocation at the start of a page.
    entries: NonNull<BufRingEntry>,
    /// Invariant: a power of two, at most 2^15.
    count: u16,
    /// Where the next entry goes; wraps, and is taken modulo `count`.
    tail: Cell<u16>,
}

impl BufRing {
    /// An empty ring, which the kernel does not know of yet.
    pub(super) fn new(count: u16) -> io::Result<BufRing> {
        assert!(
            count.is_power_of_two() && count <= 1 << 15,
            "a ring of {count} buffers"
        );
        // SAFETY: the layout is not empty.
        let entries = unsafe { alloc_zeroed(layout(count)) };
        let entries = NonNull::new(entries.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(BufRing {
            entries,
            count,
            tail: Cell::new(0),
        })
    }

    /// The address and the number of entries, as they are registered.
    pub(super) fn registration(&self) -> (u64, u16) {
        (self.entries.addr().get() as u64, self.count)
    }

    /// Lets the kernel take a buffer, from now on and until a completion names it.
    pub(super) fn push(&self, id: BufferId, address: NonNull<u8>, len: u32) {
        let tail = self.tail.get();
        let index = usize::from(tail & (self.count - 1));
        // SAFETY: within the allocation, by the mask.
        let mut slot = unsafe { self.entries.add(index) };
        // SAFETY: valid by the invariant of `entries`. The kernel does not look at it: a buffer is in the ring once, so
        // fewer than `count` entries are between its head and the tail, and this one is not.
        let entry = unsafe { slot.as_mut() };
        entry.set_addr(address.addr().get() as u64);
        entry.set_len(len);
        entry.set_bid(id.0);
        let tail = tail.wrapping_add(1);
        self.tail.set(tail);
        // SAFETY: the first entry is valid, and its last field is the tail of the ring.
        let shared = unsafe { BufRingEntry::tail(self.entries.as_ptr()) };
        // SAFETY: aligned, valid as long as the ring, and accessed atomically by both sides from the first push on.
        let shared = unsafe { AtomicU16::from_ptr(shared.cast_mut()) };
        // ORDERING: Release; pairs with the acquiring load of the tail with which the kernel begins to take a buffer: who
        // sees the new tail sees the entry in front of it.
        shared.store(tail, Ordering::Release);
    }
}

impl Drop for BufRing {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout. The kernel reads it no more: the backend that registered it keeps
        // the pool until its ring is closed, and pages that are still registered then are held by the kernel itself.
        unsafe { dealloc(self.entries.as_ptr().cast(), layout(self.count)) };
    }
}

impl fmt::Debug for BufRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufRing")
            .field("count", &self.count)
            .field("tail", &self.tail.get())
            .finish_non_exhaustive()
    }
}

fn layout(count: u16) -> Layout {
    let size = usize::from(count) * size_of::<BufRingEntry>();
    Layout::from_size_align(size, PAGE).expect("at most 2^19 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_wrap_and_leave_the_tail_alone() {
        let ring = BufRing::new(2).unwrap();
        let address = NonNull::dangling();
        // Past the end of the count of pushes, where the tail itself wraps.
        ring.tail.set(u16::MAX - 1);
        for id in [7, 8, 9] {
            ring.push(BufferId(id), address, 100);
        }
        // SAFETY: two entries of the ring's own memory, which no kernel knows of.
        let entries = unsafe { std::slice::from_raw_parts(ring.entries.as_ptr(), 2) };
        assert_eq!(entries[0].bid(), 9);
        assert_eq!(entries[1].bid(), 8);
        assert!(entries.iter().all(|entry| entry.len() == 100));
        // SAFETY: the first entry is valid.
        assert_eq!(unsafe { *BufRingEntry::tail(ring.entries.as_ptr()) }, 1);
    }
}
