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

#![expect(unsafe_code, reason = "drops what is left in one block of raw memory")]

mod consumer;
mod producer;
#[cfg(test)]
mod races;
mod storage;
#[cfg(all(test, not(loom)))]
mod tests;

use std::sync::Mutex;

pub(crate) use self::consumer::{Consumer, Drained};
pub(crate) use self::producer::Producer;
use self::storage::Storage;
use super::block::Block;
use crate::primitives::CacheAligned;
use crate::primitives::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

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
    let shared = std::sync::Arc::new(RingShared::new(capacity_bytes));
    (Producer::new(shared.clone()), Consumer::new(shared))
}

/// What stands before each payload.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Header {
    /// None marks padding.
    vtable: Option<&'static RecordVtable>,
    /// Size of the payload, or of the padding behind the header.
    payload_bytes: u32,
}

const _: () = assert!(size_of::<Header>() == UNIT);

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
