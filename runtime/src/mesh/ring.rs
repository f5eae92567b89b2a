//! Shard to shard: a ring of bytes in which one shard builds records and another consumes them.
//!
//! A message to another shard is written once, at its final place, behind a header that says how to
//! deliver it and how to drop it. There is no allocation for a message, and no shared counter is
//! touched for one: the producer makes a batch visible with one store ([`Producer::publish`]), the
//! consumer gives space back with one store for up to [`BATCH`] records. Each side keeps its own
//! index as plain data and a copy of the other's that it refreshes only when it seems to be stuck. A
//! producer that stays stuck leaves a mark ([`Producer::want_room`]), and is told when it has room.
//!
//! # Layout
//!
//! Indices count bytes from the beginning of time, wrapping, and are multiples of [`UNIT`]; an index
//! modulo the capacity is a place. A record is a [`Header`] and a payload, rounded up to whole
//! units, and it never crosses the end of the memory: where it would, the rest of the lap is filled
//! with a padding record, a header without a vtable.
//!
//! ```text
//!   head                     published              tail            head + capacity
//!    |   readable: consumer's   |   being built: producer's  |   free: producer's   |
//! ```
//!
//! # The life of a record
//!
//! [`Producer::try_push`] reserves the space, runs the caller's `build` and writes payload, then
//! header. A panic in `build` leaves the tail where it was. Until `publish` only the producer knows
//! of the record. After that it belongs to the consumer, who gives the payload to `deliver`, which
//! takes it over even if it panics; the space returns to the producer when the head moves past it. A
//! record whose consumer has gone, or never was, is dropped through `discard` with the ring, by
//! whoever drops the last handle. A producer that is dropped publishes first, so that this holds for
//! every record that was ever pushed.
//!
//! What is larger than 256 bytes lies in a block beside the ring, and its record is a pointer to it
//! ([`Producer::try_push_large`], [`super::block`]).

#![expect(
    unsafe_code,
    reason = "keeps values of many types in one block of raw memory"
)]

use std::{
    mem::MaybeUninit,
    ptr::NonNull,
    sync::{Arc, Mutex, PoisonError},
};

use super::block::{self, Block, Blocks, InBlock};
use crate::primitives::{
    CacheAligned,
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// Size of a header, and granularity and alignment of everything in the ring.
const UNIT: usize = 16;
/// The largest payload; what is larger lies in a block, or is boxed by the caller.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 256;
/// The least capacity. Below it, a record of the largest size with its padding might not fit into
/// an empty ring. Tiny under loom, whose models wrap round in a few steps.
const CAPACITY_BYTES_MIN: usize = if cfg!(loom) { 64 } else { 4096 };
/// A bit of the shared head, whose indices leave it free: the producer wants to hear of room.
const WANTED: usize = 1;
/// How many records the consumer takes before it gives their space back.
const BATCH: usize = 32;
/// A cache line: how far ahead of the record at hand the consumer prefetches.
const LINE: usize = 64;

/// What can be done with the payload of a record, whose type is not known where it is done.
///
/// Both functions take the payload over: when they return or unwind, it has been moved out or
/// dropped. The pointer is aligned for the payload's type and valid for reads and writes of it.
#[derive(Debug)]
pub(crate) struct RecordVtable {
    /// Delivers the payload; `context` is what the caller of [`Consumer::drain`] passed.
    pub(crate) deliver: unsafe fn(payload: *mut u8, context: *const ()),
    /// Drops the payload of a record that will never be delivered. It may run on any thread.
    pub(crate) discard: unsafe fn(payload: *mut u8),
}

/// True if values of type `T` can travel in a record.
pub(crate) const fn fits<T>() -> bool {
    align_of::<T>() <= UNIT && size_of::<T>() <= PAYLOAD_BYTES_MAX
}

/// Bytes that a record with a payload of this size takes.
const fn record_bytes(payload_bytes: usize) -> usize {
    UNIT + payload_bytes.next_multiple_of(UNIT)
}

/// Makes a ring and both its ends.
#[cfg(all(test, not(loom)))]
fn ring(capacity_bytes: usize) -> (Producer, Consumer) {
    let shared = Arc::new(RingShared::new(capacity_bytes));
    (Producer::new(Arc::clone(&shared)), Consumer::new(shared))
}

/// One unit of the ring's memory.
#[repr(C, align(16))]
struct Unit(MaybeUninit<[u8; UNIT]>);

/// What stands before each payload.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Header {
    /// None marks padding.
    vtable: Option<&'static RecordVtable>,
    /// Size of the payload, or of the padding behind the header.
    payload_bytes: u32,
}

const _: () = assert!(size_of::<Unit>() == UNIT && size_of::<Header>() == UNIT);

/// The memory of a ring.
struct Storage {
    /// Invariant: from `Box::into_raw` of a slice of `capacity_bytes / UNIT` units.
    units: NonNull<Unit>,
    /// Invariant: a power of two, and a multiple of `UNIT`.
    capacity_bytes: usize,
    /// One cell per unit, for loom, which does not see raw memory: see `touch`.
    #[cfg(loom)]
    touched: Vec<crate::primitives::UnsafeCell<()>>,
}

// SAFETY: `units` is memory that the storage owns alone, as a box does, and the rest is plain data.
// What is in the memory came through `try_push`, which asks for `T: Send`.
unsafe impl Send for Storage {}
// SAFETY: a shared storage gives out raw pointers and numbers; whether the memory behind a pointer
// may be touched is argued where it is done.
unsafe impl Sync for Storage {}

impl Storage {
    fn new(capacity_bytes: usize) -> Self {
        let units: Box<[MaybeUninit<Unit>]> = Box::new_uninit_slice(capacity_bytes / UNIT);
        // A unit is itself uninitialised bytes, so this is only a change of type. The pages are
        // first touched by the producer.
        let units = Box::into_raw(units).cast::<Unit>();
        Self {
            units: NonNull::new(units).expect("a box is not null"),
            capacity_bytes,
            #[cfg(loom)]
            touched: (0..capacity_bytes / UNIT)
                .map(|_| crate::primitives::UnsafeCell::new(()))
                .collect(),
        }
    }

    /// The place of an index, in bytes.
    fn place(&self, index: usize) -> usize {
        index & (self.capacity_bytes - 1)
    }

    /// The memory at an index: inside the storage, and aligned to `UNIT` as all indices are.
    fn at(&self, index: usize) -> *mut u8 {
        self.units
            .as_ptr()
            .cast::<u8>()
            .wrapping_add(self.place(index))
    }

    /// Tells loom that the caller uses these bytes, and that nobody else may do so meanwhile.
    #[inline]
    fn touch(&self, index: usize, bytes: usize) {
        #[cfg(loom)]
        for offset in (0..bytes).step_by(UNIT) {
            self.touched[self.place(index.wrapping_add(offset)) / UNIT].with_mut(|_| ());
        }
        #[cfg(not(loom))]
        let _ = (index, bytes);
    }

    /// Takes the record at `head`, passing over padding, and moves `head` behind it.
    ///
    /// Returns what to call and the payload to call it with, or `None` when `head` has reached
    /// `tail`.
    ///
    /// # Safety
    ///
    /// * From `head` to `tail` there are whole records, written by the producer.
    /// * Those writes happened before this call, and the producer does not write there again before
    ///   the caller is done with the payload.
    /// * No record is taken twice.
    unsafe fn take(
        &self,
        head: &mut usize,
        tail: usize,
    ) -> Option<(&'static RecordVtable, *mut u8)> {
        while *head != tail {
            let index = *head;
            self.touch(index, UNIT);
            // SAFETY: `at` is inside the storage and aligned for a header, and the caller says that
            // a record starts here, that its header was written and that it does not change.
            let header = unsafe { self.at(index).cast::<Header>().read() };
            let payload_bytes = header.payload_bytes as usize;
            *head = index.wrapping_add(record_bytes(payload_bytes));
            if let Some(vtable) = header.vtable {
                self.touch(index.wrapping_add(UNIT), payload_bytes);
                prefetch(self.at(head.wrapping_add(LINE)));
                return Some((vtable, self.at(index).wrapping_add(UNIT)));
            }
        }
        None
    }
}

/// Gets a cache line on its way, so that it has come from the other CPU when it is read.
#[inline]
fn prefetch(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing, whatever the address is.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

impl Drop for Storage {
    fn drop(&mut self) {
        let units = std::ptr::slice_from_raw_parts_mut(
            self.units.as_ptr().cast::<MaybeUninit<Unit>>(),
            self.capacity_bytes / UNIT,
        );
        // SAFETY: by the fields' invariants this is the slice that `new` took out of its box, and a
        // storage is dropped once.
        drop(unsafe { Box::from_raw(units) });
    }
}

/// What both ends of a ring hold on to.
pub(crate) struct RingShared {
    storage: Storage,
    /// Up to where the consumer has given space back, and whether the producer asked to hear of the
    /// next time ([`WANTED`]). Written by the consumer; the bit is set by the producer. One word holds
    /// both, so that the question and the answer have an order and none is missed.
    head: CacheAligned<AtomicUsize>,
    /// Up to where records are published. Written by the producer.
    ///
    /// Invariant: at most `capacity_bytes` after `head`, with whole records between.
    tail: CacheAligned<AtomicUsize>,
    has_producer: AtomicBool,
    has_consumer: AtomicBool,
    /// Blocks that were in flight when the producer ended. Dropped after `drop` has discarded what is in them.
    blocks_left: Mutex<Vec<Block>>,
}

impl RingShared {
    /// Makes an empty ring.
    ///
    /// # Panics
    ///
    /// If the capacity is not a power of two of at least 4 KiB.
    pub(crate) fn new(capacity_bytes: usize) -> Self {
        Self::starting_at(capacity_bytes, 0)
    }

    /// Makes an empty ring whose indices begin at `start`, which tests put just below the overflow.
    fn starting_at(capacity_bytes: usize, start: usize) -> Self {
        assert!(
            capacity_bytes.is_power_of_two() && capacity_bytes >= CAPACITY_BYTES_MIN,
            "a ring of {capacity_bytes} bytes: want a power of two from {CAPACITY_BYTES_MIN}"
        );
        debug_assert!(start.is_multiple_of(UNIT));
        Self {
            storage: Storage::new(capacity_bytes),
            head: CacheAligned::new(AtomicUsize::new(start)),
            tail: CacheAligned::new(AtomicUsize::new(start)),
            has_producer: AtomicBool::new(false),
            has_consumer: AtomicBool::new(false),
            blocks_left: Mutex::default(),
        }
    }
}

impl Drop for RingShared {
    /// Discards what was published and not consumed.
    fn drop(&mut self) {
        /// Goes on with the rest if one discard panics.
        struct Rest<'a>(&'a Storage, usize, usize);
        impl Rest<'_> {
            fn discard(&mut self) {
                // SAFETY: made below from the indices of a ring that is being dropped, so both ends
                // are gone. What they wrote happened before the drop of the last `Arc`; the tail was
                // stored after whole records; the consumer stored a head behind what it had taken,
                // and `take` moves ours on.
                while let Some((vtable, payload)) = unsafe { self.0.take(&mut self.1, self.2) } {
                    // SAFETY: `try_push` wrote this payload with this vtable, and `take` hands it
                    // out once.
                    unsafe { (vtable.discard)(payload) };
                }
            }
        }
        impl Drop for Rest<'_> {
            fn drop(&mut self) {
                self.discard();
            }
        }
        // ORDERING: Relaxed; `&mut self` says that every other use happened before.
        let mut rest = Rest(
            &self.storage,
            self.head.load(Relaxed) & !WANTED,
            self.tail.load(Relaxed),
        );
        rest.discard();
    }
}

/// The writing end.
pub(crate) struct Producer {
    shared: Arc<RingShared>,
    /// Behind the last record that was built.
    tail: usize,
    /// Behind the last record that was published: the value of `shared.tail`.
    published: usize,
    /// A past value of `shared.head`.
    ///
    /// Invariant: from it to `tail` are at most `capacity_bytes`.
    head_seen: usize,
    /// Invariant: those in flight are pointed to by records that end where it is noted.
    blocks: Blocks,
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
    /// ([`Drained::sender_wants_room`]).
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

    /// How many bytes of records wait for [`Producer::publish`].
    #[inline]
    pub(crate) fn unpublished_bytes(&self) -> usize {
        self.tail.wrapping_sub(self.published)
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

/// What a [`Consumer::drain`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Drained {
    /// How many records were delivered.
    pub(crate) count: usize,
    /// The producer waits for room and there is some now: wake its shard.
    pub(crate) sender_wants_room: bool,
}

/// The reading end.
pub(crate) struct Consumer {
    shared: Arc<RingShared>,
    /// Behind the last record that was taken.
    head: usize,
    /// Behind the last record whose space was given back: the value of `shared.head`.
    released: usize,
    /// A past value of `shared.tail`, read with acquire.
    ///
    /// Invariant: from `head` to it there are whole records, published and not taken.
    tail_seen: usize,
    /// A release found the producer waiting, and nobody was told yet.
    wanted: bool,
}

impl Consumer {
    /// Makes the reading end, on the thread that will read.
    ///
    /// # Panics
    ///
    /// If the ring has had a consumer.
    pub(crate) fn new(shared: Arc<RingShared>) -> Self {
        // ORDERING: Relaxed, for the reason given in `Producer::new`.
        let taken = shared.has_consumer.swap(true, Relaxed);
        assert!(!taken, "a ring has one consumer");
        // ORDERING: Relaxed; only a consumer writes the head, and there has been none.
        let head = shared.head.load(Relaxed) & !WANTED;
        Self {
            shared,
            head,
            released: head,
            tail_seen: head,
            wanted: false,
        }
    }

    /// Delivers up to `max` records in the order of their pushes.
    ///
    /// If a delivery panics, its record counts as consumed and the panic goes on to the caller.
    ///
    /// # Safety
    ///
    /// `context` is what the `deliver` functions of all records in this ring ask for.
    pub(crate) unsafe fn drain(&mut self, max: usize, context: *const ()) -> Drained {
        /// Gives back what was taken, at the latest when a panic passes through.
        struct Release<'a>(&'a mut Consumer);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                self.0.release();
            }
        }
        let this = Release(self);
        let mut delivered = 0;
        while delivered < max {
            let Some((vtable, payload)) = this.0.take() else {
                break;
            };
            // SAFETY: `try_push` wrote this payload with this vtable, and `take` hands it out once.
            // The context is right by our caller's word. The space is not given back before this
            // call has ended.
            unsafe { (vtable.deliver)(payload, context) };
            delivered += 1;
            if delivered % BATCH == 0 {
                this.0.release();
            }
        }
        drop(this);
        Drained {
            count: delivered,
            sender_wants_room: std::mem::take(&mut self.wanted),
        }
    }

    /// True if no record is visible.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        // ORDERING: Relaxed; nothing is read on the strength of it. It cannot miss a record whose
        // announcement this shard has taken, as the publishing happened before that.
        self.head == self.tail_seen && self.head == self.shared.tail.load(Relaxed)
    }

    /// Takes the next record. Its space stays reserved until `release`.
    #[inline]
    fn take(&mut self) -> Option<(&'static RecordVtable, *mut u8)> {
        if self.head == self.tail_seen {
            // ORDERING: Acquire; pairs with the release in `Producer::publish`.
            self.tail_seen = self.shared.tail.load(Acquire);
        }
        // SAFETY:
        // * Between the indices are whole records, by the invariant of `tail_seen`.
        // * The acquire above, now or earlier, saw the tail that was stored after them, and the
        //   producer does not come back here before it sees a head that `release` has yet to store.
        // * The head moves on with each record that is taken.
        unsafe { self.shared.storage.take(&mut self.head, self.tail_seen) }
    }

    /// Gives the space of all taken records back to the producer.
    #[inline]
    fn release(&mut self) {
        if self.head != self.released {
            // ORDERING: AcqRel; the release pairs with the acquire in `Producer::reserve`: our reads of
            // the records are over before the producer writes there again. A swap and not a store,
            // for `Producer::want_room`, which names this place.
            let old = self.shared.head.swap(self.head, AcqRel);
            self.wanted |= old & WANTED != 0;
            self.released = self.head;
        }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        cell::RefCell,
        panic::{AssertUnwindSafe, catch_unwind},
        ptr,
        sync::Arc,
    };

    use super::{Consumer, InBlock, Producer, RecordVtable, RingShared, fits, ring};

    /// What a consumer delivers to in these tests.
    type Inbox = RefCell<Vec<Box<dyn std::any::Any>>>;

    /// Knows how to deliver a `T` to an `Inbox`.
    struct Of<T>(T);

    impl<T: Send + 'static> Of<T> {
        const VTABLE: RecordVtable = RecordVtable {
            deliver: |payload, context| {
                // SAFETY: used with records of this type only; each is delivered once.
                let value = unsafe { payload.cast::<T>().read() };
                // SAFETY: `drain` below passes an inbox that outlives the call.
                let inbox = unsafe { &*context.cast::<Inbox>() };
                inbox.borrow_mut().push(Box::new(value));
            },
            discard: |payload| {
                // SAFETY: used with records of this type only; each is discarded once.
                unsafe { payload.cast::<T>().drop_in_place() };
            },
        };
    }

    fn push<T: Send + 'static>(producer: &mut Producer, value: T) -> bool {
        // SAFETY: the table is the one for `T`.
        unsafe { producer.try_push(&const { Of::<T>::VTABLE }, || value) }
    }

    fn drain_any(consumer: &mut Consumer, max: usize) -> Vec<Box<dyn std::any::Any>> {
        let inbox = Inbox::default();
        // SAFETY: all records in these rings are pushed with a table that wants an inbox.
        let count = unsafe { consumer.drain(max, ptr::from_ref(&inbox).cast()) }.count;
        let values = inbox.into_inner();
        assert_eq!(values.len(), count);
        values
    }

    fn drain<T: 'static>(consumer: &mut Consumer, max: usize) -> Vec<T> {
        drain_any(consumer, max)
            .into_iter()
            .map(|value| *value.downcast().expect("the type that was pushed"))
            .collect()
    }

    #[test]
    fn records_are_invisible_until_they_are_published() {
        let (mut producer, mut consumer) = ring(4096);
        assert!(!producer.publish());
        assert!(push(&mut producer, 1_u64));
        assert!(push(&mut producer, 2_u64));
        assert_eq!(producer.unpublished_bytes(), 64);
        assert!(consumer.is_empty());
        assert!(drain::<u64>(&mut consumer, 9).is_empty());
        assert!(producer.publish());
        assert!(!producer.publish());
        assert_eq!(producer.unpublished_bytes(), 0);
        assert!(!consumer.is_empty());
        assert_eq!(drain::<u64>(&mut consumer, 1), [1]);
        assert!(!consumer.is_empty());
        assert_eq!(drain::<u64>(&mut consumer, 9), [2]);
        assert!(consumer.is_empty());
    }

    #[test]
    fn records_of_many_types_keep_their_order() {
        let (mut producer, mut consumer) = ring(4096);
        assert!(push(&mut producer, ()));
        assert!(push(&mut producer, 7_u8));
        assert!(push(&mut producer, String::from("text")));
        assert!(push(&mut producer, [9_u8; 256]));
        assert!(push(&mut producer, u128::MAX));
        assert!(producer.publish());
        let values = drain_any(&mut consumer, 9);
        assert!(values[0].is::<()>());
        assert_eq!(values[1].downcast_ref(), Some(&7_u8));
        assert_eq!(values[2].downcast_ref(), Some(&String::from("text")));
        assert_eq!(values[3].downcast_ref(), Some(&[9_u8; 256]));
        assert_eq!(values[4].downcast_ref(), Some(&u128::MAX));
    }

    impl<T: Send + 'static> Of<T> {
        const IN_BLOCK: RecordVtable = RecordVtable {
            deliver: |payload, context| {
                // SAFETY: used with records of this type only; each is delivered once.
                let in_block = unsafe { payload.cast::<InBlock<T>>().read() };
                // SAFETY: the ring has the block until the space of its record is given back.
                let value = unsafe { in_block.take() };
                // SAFETY: `drain` below passes an inbox that outlives the call.
                let inbox = unsafe { &*context.cast::<Inbox>() };
                inbox.borrow_mut().push(Box::new(value));
            },
            discard: |payload| {
                // SAFETY: used with records of this type only; each is discarded once.
                let in_block = unsafe { payload.cast::<InBlock<T>>().read() };
                // SAFETY: as above.
                drop(unsafe { in_block.take() });
            },
        };
    }

    fn push_large<T: Send + 'static>(producer: &mut Producer, value: T) -> bool {
        // SAFETY: the table is the one for a `T` in a block.
        unsafe { producer.try_push_large(&const { Of::<T>::IN_BLOCK }, || value) }
    }

    #[test]
    fn large_records_use_their_blocks_again() {
        let (mut producer, mut consumer) = ring(4096);
        for round in 0..500_u64 {
            for number in 0..8 {
                assert!(push_large(&mut producer, [round * 8 + number; 100]));
            }
            assert!(push(&mut producer, round));
            assert!(producer.publish());
            let values = drain_any(&mut consumer, 99);
            assert_eq!(values.len(), 9);
            for (number, value) in (0..).zip(&values[..8]) {
                assert_eq!(value.downcast_ref(), Some(&[round * 8 + number; 100]));
            }
        }
        assert_eq!(producer.blocks.bytes(), 8 * 1024);
    }

    #[test]
    fn large_records_wait_for_their_blocks_and_hear_of_them() {
        let (mut producer, mut consumer) = ring(4096);
        let sent = (0..99)
            .take_while(|number| push_large(&mut producer, [*number; 1024]))
            .count();
        assert_eq!(sent, 4, "four rings of blocks, of which each takes one");
        assert!(push(&mut producer, 7_u8), "the ring has room");
        assert!(!producer.want_room());
        assert!(producer.publish());
        let inbox = Inbox::default();
        // SAFETY: all records in this ring want an inbox.
        let drained = unsafe { consumer.drain(1, ptr::from_ref(&inbox).cast()) };
        assert!(drained.sender_wants_room);
        assert!(producer.want_room());
        assert!(push_large(&mut producer, [4_u32; 1024]));
        assert!(!push_large(&mut producer, [5_u32; 1024]));
        assert_eq!(drain_any(&mut consumer, 9).len(), 4);
    }

    #[test]
    fn a_panic_in_build_leaves_the_block_idle() {
        let (mut producer, mut consumer) = ring(4096);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the table is the one for this type in a block.
            unsafe {
                producer.try_push_large::<[u8; 999]>(&const { Of::<[u8; 999]>::IN_BLOCK }, || {
                    panic!("boom")
                })
            }
        }));
        assert!(panicked.is_err());
        assert!(push_large(&mut producer, [1_u8; 999]));
        assert_eq!(producer.blocks.bytes(), 1024);
        assert!(producer.publish());
        assert_eq!(drain::<[u8; 999]>(&mut consumer, 9), [[1; 999]]);
    }

    #[test]
    fn blocks_in_flight_outlive_both_ends() {
        #[expect(dead_code, reason = "one counts, the other has a size")]
        struct Large(Arc<()>, [u8; 900]);
        let witness = Arc::new(());
        let (mut producer, mut consumer) = ring(4096);
        for _ in 0..4 {
            assert!(push_large(&mut producer, Large(witness.clone(), [0; 900])));
        }
        drop(producer);
        assert_eq!(drain::<Large>(&mut consumer, 2).len(), 2);
        assert_eq!(Arc::strong_count(&witness), 3);
        drop(consumer);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn only_what_fits_fits() {
        #[repr(align(32))]
        struct Strict;
        assert!(fits::<[u8; 256]>());
        assert!(fits::<u128>());
        assert!(!fits::<[u8; 257]>());
        assert!(!fits::<Strict>());
    }

    #[test]
    fn a_full_ring_refuses_without_building() {
        let (mut producer, mut consumer) = ring(4096);
        for index in 0..128_u64 {
            assert!(push(&mut producer, index));
        }
        assert!(!producer.want_room());
        // SAFETY: the table is the one for `u64`.
        let pushed = unsafe {
            producer.try_push::<u64>(&const { Of::<u64>::VTABLE }, || unreachable!("no room"))
        };
        assert!(!pushed);
        assert!(producer.publish());
        assert!(!push(&mut producer, ()));
        assert_eq!(drain::<u64>(&mut consumer, 1), [0]);
        assert!(push(&mut producer, 128_u64));
        assert!(!push(&mut producer, ()));
        assert!(producer.publish());
        assert_eq!(
            drain::<u64>(&mut consumer, 999),
            (1..=128).collect::<Vec<_>>()
        );
    }

    /// Goes round the ring and over the overflow of the indices with every record size.
    #[test]
    fn records_survive_the_wrap() {
        let start = usize::MAX - 15 - 4096;
        let shared = Arc::new(RingShared::starting_at(4096, start));
        let mut producer = Producer::new(Arc::clone(&shared));
        let mut consumer = Consumer::new(shared);
        for round in 0..200_u8 {
            assert!(push(&mut producer, [round; 256]));
            assert!(push(&mut producer, u32::from(round)));
            assert!(push(&mut producer, [u64::from(round); 9]));
            assert!(push(&mut producer, ()));
            assert!(producer.publish());
            let values = drain_any(&mut consumer, 99);
            assert_eq!(values.len(), 4);
            assert_eq!(values[0].downcast_ref(), Some(&[round; 256]));
            assert_eq!(values[1].downcast_ref(), Some(&u32::from(round)));
            assert_eq!(values[2].downcast_ref(), Some(&[u64::from(round); 9]));
            assert!(values[3].is::<()>());
        }
        assert!(consumer.head < start);
    }

    #[test]
    fn a_panic_in_build_leaves_the_ring_untouched() {
        let (mut producer, mut consumer) = ring(4096);
        assert!(push(&mut producer, 1_u64));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the table is the one for `u64`.
            unsafe { producer.try_push::<u64>(&const { Of::<u64>::VTABLE }, || panic!("boom")) }
        }));
        assert!(panicked.is_err());
        assert!(push(&mut producer, 2_u64));
        assert!(producer.publish());
        assert_eq!(drain::<u64>(&mut consumer, 9), [1, 2]);
    }

    #[test]
    fn a_panic_in_a_delivery_frees_its_slot() {
        static FRAGILE: RecordVtable = RecordVtable {
            deliver: |_, _| panic!("boom"),
            discard: |_| unreachable!("it is delivered"),
        };
        let (mut producer, mut consumer) = ring(4096);
        for index in 0..127_u64 {
            assert!(push(&mut producer, index));
        }
        // SAFETY: the table does not look at the payload, which needs no drop.
        assert!(unsafe { producer.try_push(&FRAGILE, || 0_u64) });
        assert!(producer.publish());
        assert_eq!(drain::<u64>(&mut consumer, 127).len(), 127);
        let panicked = catch_unwind(AssertUnwindSafe(|| drain::<u64>(&mut consumer, 9)));
        assert!(panicked.is_err());
        assert!(consumer.is_empty());
        assert_eq!(producer.shared.head.load(super::Relaxed), 4096);
    }

    #[test]
    fn what_nobody_consumes_is_dropped_with_the_ring() {
        let witness = Arc::new(());
        let (mut producer, mut consumer) = ring(4096);
        for _ in 0..3 {
            assert!(push(&mut producer, Arc::clone(&witness)));
            assert!(producer.publish());
        }
        assert!(push(&mut producer, Arc::clone(&witness)));
        assert_eq!(drain::<Arc<()>>(&mut consumer, 1).len(), 1);
        drop(consumer);
        assert_eq!(Arc::strong_count(&witness), 4);
        drop(producer);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn the_records_of_a_producer_that_has_gone_are_still_delivered() {
        let (mut producer, mut consumer) = ring(4096);
        assert!(push(&mut producer, 1_u64));
        drop(producer);
        assert_eq!(drain::<u64>(&mut consumer, 9), [1]);
    }

    #[test]
    fn a_panic_in_one_discard_does_not_leak_the_others() {
        struct Bomb(Arc<()>, bool);
        impl Drop for Bomb {
            fn drop(&mut self) {
                assert!(!self.1, "boom with {} others", Arc::strong_count(&self.0));
            }
        }
        let witness = Arc::new(());
        let (mut producer, consumer) = ring(4096);
        for index in 0..4 {
            assert!(push(&mut producer, Bomb(Arc::clone(&witness), index == 1)));
        }
        drop(producer);
        let blast = catch_unwind(AssertUnwindSafe(|| drop(consumer)));
        assert!(blast.is_err());
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    #[should_panic(expected = "a ring has one producer")]
    fn a_second_producer_is_refused() {
        let shared = Arc::new(RingShared::new(4096));
        drop(Producer::new(Arc::clone(&shared)));
        drop(Producer::new(shared));
    }

    #[test]
    #[should_panic(expected = "a ring has one consumer")]
    fn a_second_consumer_is_refused() {
        let shared = Arc::new(RingShared::new(4096));
        drop(Consumer::new(Arc::clone(&shared)));
        drop(Consumer::new(shared));
    }

    #[test]
    #[should_panic(expected = "want a power of two")]
    fn an_odd_capacity_is_refused() {
        drop(RingShared::new(5000));
    }
}

#[cfg(test)]
mod races {
    use std::{cell::RefCell, ptr, sync::Arc};

    use super::{
        CAPACITY_BYTES_MIN, Consumer, Drained, InBlock, Producer, RecordVtable, RingShared,
    };
    use crate::{
        inject::handshake::model::{MANY, Shard, explore},
        primitives::{
            atomic::{AtomicUsize, Ordering::Relaxed},
            mpsc, thread,
        },
    };

    /// Eight units under loom, of which a record takes three: two records leave no room for a third
    /// before the end, so it goes behind padding.
    const CAPACITY_BYTES: usize = if cfg!(loom) { 128 } else { CAPACITY_BYTES_MIN };
    /// What a consumer delivers to.
    type Inbox = RefCell<Vec<usize>>;

    struct Of<const LEN: usize>;

    impl<const LEN: usize> Of<LEN> {
        /// Delivers the first of `LEN` equal numbers.
        const VTABLE: RecordVtable = RecordVtable {
            deliver: |payload, context| {
                // SAFETY: used with records of this type only; each is delivered once.
                let value = unsafe { payload.cast::<[usize; LEN]>().read() };
                // SAFETY: `drain` below passes an inbox that outlives the call.
                let inbox = unsafe { &*context.cast::<Inbox>() };
                assert_eq!(value, [value[0]; LEN]);
                inbox.borrow_mut().push(value[0]);
            },
            discard: |_| {},
        };
    }

    fn push<const LEN: usize>(producer: &mut Producer, value: usize) -> bool {
        // SAFETY: the table is the one for an array of this length.
        unsafe { producer.try_push(&const { Of::<LEN>::VTABLE }, || [value; LEN]) }
    }

    fn drain(consumer: &mut Consumer, max: usize, inbox: &Inbox) -> Drained {
        // SAFETY: all records in these rings want an inbox.
        unsafe { consumer.drain(max, ptr::from_ref(inbox).cast()) }
    }

    /// Pushes records through a ring whose indices start at the given unit, and publishes each; each
    /// side waits for the other only by yielding.
    fn stream(count: usize, start_units: usize, max: usize) {
        explore(3, move || {
            let shared = Arc::new(RingShared::starting_at(CAPACITY_BYTES, start_units * 16));
            let writer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let mut producer = Producer::new(shared);
                    for value in 0..count {
                        while !push::<4>(&mut producer, value) {
                            thread::yield_now();
                        }
                        assert!(producer.publish());
                    }
                })
            };
            let mut consumer = Consumer::new(shared);
            let inbox = Inbox::default();
            while inbox.borrow().len() < count {
                if drain(&mut consumer, max, &inbox).count == 0 {
                    thread::yield_now();
                }
            }
            assert!(consumer.is_empty());
            writer.join().unwrap();
            assert!(inbox.into_inner().into_iter().eq(0..count));
        });
    }

    #[test]
    fn records_pass_one_by_one_over_the_wrap() {
        stream(4 * MANY, 0, 1);
    }

    #[test]
    fn records_pass_in_batches_over_the_wrap() {
        stream(4 * MANY, 0, 9);
        stream(3 * MANY, 5, 99);
    }

    #[test]
    fn indices_overflow() {
        stream(3 * MANY, usize::MAX / 16 - 2, 9);
    }

    /// More large records than there are blocks: each block passes back and forth, with no atomic of its own.
    #[test]
    fn blocks_come_back_with_the_space_of_their_records() {
        const COUNT: usize = 3 * MANY;
        type Large = [usize; 64];
        static IN_BLOCK: RecordVtable = RecordVtable {
            deliver: |payload, context| {
                // SAFETY: all records in this ring are of this type; each is delivered once.
                let in_block = unsafe { payload.cast::<InBlock<Large>>().read() };
                // SAFETY: the ring has the block until the space of its record is given back.
                let value = unsafe { in_block.take() };
                // SAFETY: `drain` passes an inbox that outlives the call.
                let inbox = unsafe { &*context.cast::<Inbox>() };
                assert_eq!(value, [value[0]; 64]);
                inbox.borrow_mut().push(value[0]);
            },
            discard: |_| unreachable!("all are delivered"),
        };
        explore(3, || {
            let shared = Arc::new(RingShared::new(CAPACITY_BYTES));
            let writer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let mut producer = Producer::new(shared);
                    for value in 0..COUNT {
                        // SAFETY: the table is the one for such a value in a block.
                        while !unsafe { producer.try_push_large(&IN_BLOCK, || [value; 64]) } {
                            thread::yield_now();
                        }
                        assert!(producer.publish());
                    }
                })
            };
            let mut consumer = Consumer::new(shared);
            let inbox = Inbox::default();
            while inbox.borrow().len() < COUNT {
                if drain(&mut consumer, 1, &inbox).count == 0 {
                    thread::yield_now();
                }
            }
            writer.join().unwrap();
            assert!(inbox.into_inner().into_iter().eq(0..COUNT));
        });
    }

    /// The ring as a lane of the injector: publish, announce, sleep.
    #[test]
    fn a_published_batch_wakes_the_consumer() {
        const COUNT: usize = 2 * MANY;
        explore(3, || {
            let shard = Arc::new(Shard::new());
            let shared = Arc::new(RingShared::new(CAPACITY_BYTES));
            let writer = {
                let (shard, shared) = (Arc::clone(&shard), Arc::clone(&shared));
                thread::spawn(move || {
                    let mut producer = Producer::new(shared);
                    for value in 0..COUNT {
                        while !push::<4>(&mut producer, value) {
                            thread::yield_now();
                        }
                        assert!(producer.publish());
                        shard.announce();
                    }
                })
            };
            let mut consumer = Consumer::new(shared);
            let inbox = Inbox::default();
            shard.run(0, || {
                if !consumer.is_empty() {
                    drain(&mut consumer, usize::MAX, &inbox);
                }
                inbox.borrow().len() == COUNT
            });
            writer.join().unwrap();
            assert!(inbox.into_inner().into_iter().eq(0..COUNT));
        });
    }

    /// A producer without room sleeps until the consumer tells it that it has given some back. A
    /// word that is not passed on leaves it asleep.
    #[test]
    fn a_producer_that_wants_room_hears_of_it() {
        const COUNT: usize = 4 * MANY;
        // Two records of fifteen units leave no room for one of the largest size.
        const CAPACITY_BYTES: usize = if cfg!(loom) { 512 } else { CAPACITY_BYTES_MIN };
        explore(3, || {
            let shared = Arc::new(RingShared::new(CAPACITY_BYTES));
            let (tell, told) = mpsc::channel();
            let writer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let mut producer = Producer::new(shared);
                    for value in 0..COUNT {
                        while !push::<28>(&mut producer, value) {
                            while !producer.want_room() {
                                told.recv().unwrap();
                            }
                        }
                        assert!(producer.publish());
                    }
                    // What is told from now on finds its listener.
                    told
                })
            };
            let mut consumer = Consumer::new(shared);
            let inbox = Inbox::default();
            while inbox.borrow().len() < COUNT {
                let drained = drain(&mut consumer, 1, &inbox);
                if drained.sender_wants_room {
                    tell.send(()).unwrap();
                }
                if drained.count == 0 {
                    thread::yield_now();
                }
            }
            drop(writer.join().unwrap());
            assert!(inbox.into_inner().into_iter().eq(0..COUNT));
        });
    }

    #[test]
    fn the_last_owner_discards_what_is_left() {
        type Witness = Arc<AtomicUsize>;
        static WITNESS: RecordVtable = RecordVtable {
            deliver: |payload, _| {
                // SAFETY: all records in this ring are witnesses; each is delivered once.
                let witness = unsafe { payload.cast::<Witness>().read() };
                witness.fetch_add(1, Relaxed);
            },
            discard: |payload| {
                // SAFETY: all records in this ring are witnesses; each is discarded once.
                let witness = unsafe { payload.cast::<Witness>().read() };
                witness.fetch_add(1, Relaxed);
            },
        };
        explore(3, || {
            let witness = Witness::new(AtomicUsize::new(0));
            let shared = Arc::new(RingShared::new(CAPACITY_BYTES));
            let writer = {
                let (shared, witness) = (Arc::clone(&shared), Arc::clone(&witness));
                thread::spawn(move || {
                    let mut producer = Producer::new(shared);
                    for _ in 0..2 {
                        let witness = Arc::clone(&witness);
                        // SAFETY: the table is the one for a witness.
                        assert!(unsafe { producer.try_push(&WITNESS, move || witness) });
                        assert!(producer.publish());
                    }
                })
            };
            let mut consumer = Consumer::new(shared);
            // SAFETY: a witness asks for no context.
            let drained = unsafe { consumer.drain(1, ptr::null()) };
            assert!(drained.count <= 1);
            // Only now, so that we are the last: loom does not know what `Arc` orders.
            writer.join().unwrap();
            drop(consumer);
            assert_eq!(witness.load(Relaxed), 2);
        });
    }
}
