//! The reading end of a ring.

#![expect(
    unsafe_code,
    reason = "hands out payloads that lie in one block of raw memory"
)]

use std::sync::Arc;

use super::storage::{AHEAD, prefetch};
use super::{BATCH, RecordVtable, RingShared, WANTED};
use crate::primitives::atomic::Ordering::{AcqRel, Acquire, Relaxed};

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
    pub(super) head: usize,
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

    /// There may be news: gets the producer's index and the first line of the next record on their way.
    #[inline]
    pub(crate) fn expect(&self) {
        prefetch(std::ptr::from_ref(&self.shared.tail).cast());
        prefetch(self.shared.storage.at(self.head));
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
    pub(super) fn is_empty(&self) -> bool {
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
            let behind = self.tail_seen.wrapping_sub(self.head).min(AHEAD);
            let storage = &self.shared.storage;
            storage.fetch(self.head, self.head.wrapping_add(behind));
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
