//! The writing end of a ring.

#![expect(
    unsafe_code,
    reason = "writes values of many types into one block of raw memory"
)]

use std::sync::{Arc, PoisonError};

use super::storage::AHEAD;
use super::{
    Header, PAYLOAD_BYTES_MAX, RecordVtable, RingShared, UNIT, WANTED, fits, record_bytes,
};
use crate::mesh::block::{self, Blocks, InBlock};
use crate::primitives::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The writing end.
pub(crate) struct Producer {
    pub(super) shared: Arc<RingShared>,
    /// Behind the last record that was built.
    tail: usize,
    /// Behind the last record that was published: the value of `shared.tail`.
    published: usize,
    /// A past value of `shared.head`.
    ///
    /// Invariant: from it to `tail` are at most `capacity_bytes`.
    head_seen: usize,
    /// Invariant: those in flight are pointed to by records that end where it is noted.
    pub(super) blocks: Blocks,
}

impl Producer {
    /// Makes the writing end, on the thread that will write.
    ///
    /// # Panics
    ///
    /// If the ring has had a producer.
    pub(crate) fn new(shared: Arc<RingShared>) -> Self {
        // ORDERING: Relaxed; it is the swap alone that makes the second one fail. The ring was made
        // before, and reached us by whatever passed on the `Arc`.
        let taken = shared.has_producer.swap(true, Relaxed);
        assert!(!taken, "a ring has one producer");
        // ORDERING: Relaxed; both are as they were made. The consumer may have come, but has had
        // nothing to move its head over.
        let tail = shared.tail.load(Relaxed);
        let blocks = Blocks::new(shared.storage.capacity_bytes);
        Self {
            shared,
            tail,
            published: tail,
            head_seen: tail,
            blocks,
        }
    }

    /// Builds a record in the ring if there is room; false, with `build` not called, if not.
    ///
    /// The consumer sees it after the next [`Producer::publish`].
    ///
    /// # Safety
    ///
    /// The functions of `vtable` take payloads of type `T`.
    #[inline]
    pub(crate) unsafe fn try_push<T: Send>(
        &mut self,
        vtable: &'static RecordVtable,
        build: impl FnOnce() -> T,
    ) -> bool {
        // Not in a `const` block: the compiler evaluates those of branches that are never taken too.
        assert!(
            fits::<T>(),
            "a value of {} bytes is too large or too strictly aligned for a record",
            size_of::<T>()
        );
        let Some(padding) = self.reserve(record_bytes(size_of::<T>())) else {
            return false;
        };
        let value = build();
        // Nothing from here on can panic, so the value cannot be left behind half announced.
        let storage = &self.shared.storage;
        let start = self.tail.wrapping_add(padding);
        let end = start.wrapping_add(record_bytes(size_of::<T>()));
        storage.touch(self.tail, end.wrapping_sub(self.tail));
        if padding > 0 {
            let header = Header {
                vtable: None,
                payload_bytes: u32_bytes(padding - UNIT),
            };
            // SAFETY: `at` is in the storage and aligned for a header; padding is not less than one.
            // The bytes are free: `reserve` found them behind the tail and before the head.
            unsafe { storage.at(self.tail).cast::<Header>().write(header) };
        }
        let header = Header {
            vtable: Some(vtable),
            payload_bytes: u32_bytes(size_of::<T>()),
        };
        let record = storage.at(start);
        // SAFETY: as for the padding; the record starts with room for a header.
        unsafe { record.cast::<Header>().write(header) };
        let payload = record.wrapping_add(UNIT).cast::<T>();
        // SAFETY: `reserve` found a whole record, in one piece and free, so there is room for a `T`
        // behind the header, and `UNIT` is a multiple of its alignment.
        unsafe { payload.write(value) };
        self.fetch_ahead(end);
        self.tail = end;
        true
    }

    /// As [`Producer::try_push`], for a value that lies in a block; the payload in the ring is an [`InBlock`].
    ///
    /// # Safety
    ///
    /// The functions of `vtable` take payloads of type `InBlock<T>`, and have taken the value out of the block when they
    /// return or unwind.
    pub(crate) unsafe fn try_push_large<T: Send>(
        &mut self,
        vtable: &'static RecordVtable,
        build: impl FnOnce() -> T,
    ) -> bool {
        let size = block::Size::of::<T>();
        let room = self
            .reserve(record_bytes(size_of::<InBlock<T>>()))
            .is_some();
        if !room || !self.has_block(size) {
            return false;
        }
        // A panic leaves the block where it is.
        let value = build();
        let block = self.blocks.take(size);
        // SAFETY: it was idle, so whatever was in it was taken by the functions of an earlier vtable, before its record's
        // space was given back; nobody else has a pointer to it.
        let in_block = unsafe { block.put(value) };
        // SAFETY: by our contract.
        let pushed = unsafe { self.try_push(vtable, || in_block) };
        assert!(pushed, "the room that was found is still there");
        self.blocks.send(block, self.tail);
        true
    }

    /// Whether a block of this size is idle, or can be made.
    #[inline]
    fn has_block(&mut self, size: block::Size) -> bool {
        if self.blocks.has_idle(size) {
            return true;
        }
        // ORDERING: Acquire; as in `reserve`: the consumer is done with the records before this head, and with the blocks
        // that they point to.
        self.head_seen = self.shared.head.load(Acquire) & !WANTED;
        self.blocks.reclaim(self.head_seen);
        self.blocks.has_idle(size) || self.blocks.grow(size)
    }

    /// True if a record with a payload of the largest size has room now, and the block that was last
    /// missing is there. If not, the consumer has been asked to say so when it next gives space back
    /// ([`super::consumer::Drained::sender_wants_room`]).
    pub(crate) fn want_room(&mut self) -> bool {
        if self.has_room() {
            return true;
        }
        // ORDERING: AcqRel; pairs with the swap in `Consumer::release`. Both are read-modify-writes of
        // one word: either the release comes later and finds the bit, or it came before and this sees
        // its head.
        self.head_seen = self.shared.head.fetch_or(WANTED, AcqRel) & !WANTED;
        self.has_room()
    }

    fn has_room(&mut self) -> bool {
        const LARGEST: usize = record_bytes(PAYLOAD_BYTES_MAX);
        let room = self.reserve(LARGEST).is_some();
        match self.blocks.wanted() {
            Some(size) if room => self.has_block(size),
            _ => room,
        }
    }

    /// Makes all records built so far visible; false if there was nothing new.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        if self.tail == self.published {
            return false;
        }
        // ORDERING: Release; pairs with the acquire of the tail in `Consumer`: who sees this tail
        // sees the records before it.
        self.shared.tail.store(self.tail, Release);
        self.published = self.tail;
        true
    }

    /// Behind the last record that was built, and whether a record was not taken yet.
    pub(crate) fn progress(&self) -> (usize, bool) {
        // ORDERING: Acquire; pairs with the swap in `Consumer::release`: what the consumer did with the records before
        // this head has happened.
        let head = self.shared.head.load(Acquire) & !WANTED;
        (self.tail, head != self.tail)
    }

    /// How many bytes of records wait for [`Producer::publish`].
    #[inline]
    pub(crate) fn unpublished_bytes(&self) -> usize {
        self.tail.wrapping_sub(self.published)
    }

    /// Gets the lines of records to come on their way, as far as they are known to be free: one that the consumer is yet to
    /// read stays with it.
    #[inline]
    fn fetch_ahead(&self, end: usize) {
        let storage = &self.shared.storage;
        if end.wrapping_sub(self.head_seen) + AHEAD <= storage.capacity_bytes {
            storage.fetch_to_write(self.tail.wrapping_add(AHEAD), end.wrapping_add(AHEAD));
        }
    }

    /// Looks for room for a record of this size, and returns how much padding goes before it.
    #[inline]
    fn reserve(&mut self, record_bytes: usize) -> Option<usize> {
        let storage = &self.shared.storage;
        let capacity = storage.capacity_bytes;
        let lap_rest = capacity - storage.place(self.tail);
        let padding = if record_bytes > lap_rest { lap_rest } else { 0 };
        let needed = padding + record_bytes;
        if capacity - self.tail.wrapping_sub(self.head_seen) < needed {
            // ORDERING: Acquire; pairs with the release in `Consumer::release`: the consumer is done
            // with the bytes before this head, so we may write there.
            self.head_seen = self.shared.head.load(Acquire) & !WANTED;
            if capacity - self.tail.wrapping_sub(self.head_seen) < needed {
                return None;
            }
        }
        Some(padding)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        let _: bool = self.publish();
        // ORDERING: Acquire; as in `Producer::has_block`.
        let head = self.shared.head.load(Acquire) & !WANTED;
        self.blocks.reclaim(head);
        let left = self.shared.blocks_left.lock();
        left.unwrap_or_else(PoisonError::into_inner)
            .extend(self.blocks.end());
    }
}

/// The size of a record, which is far below 4 GiB.
const fn u32_bytes(bytes: usize) -> u32 {
    debug_assert!(bytes <= PAYLOAD_BYTES_MAX);
    #[expect(clippy::cast_possible_truncation, reason = "bounded in the line above")]
    {
        bytes as u32
    }
}
