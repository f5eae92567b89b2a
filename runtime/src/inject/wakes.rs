//! Wake-ups of a shard's tasks from other threads, by slot number: no allocation, no ownership.
//!
//! A waker that may be cloned, woken and dropped on any thread at any time is safest when it owns
//! nothing. So it carries two numbers, the slot of the task and the generation of that slot, and
//! this table has one cell for each slot. A wake marks the cell as queued and pushes the slot number
//! on a stack of numbers that runs through the cells. The shard takes the whole stack at once.
//!
//! # The life of a cell
//!
//! Cells live in buckets. The shard makes a bucket when the task slab first grows into it, and from
//! then on the bucket stays where it is until the table is dropped, which for the tables of shards
//! is never: they live in memory that is handed from one system to the next. So a waker may touch
//! its cell without asking anybody, also when task, shard and system are long gone.
//!
//! A cell is *idle* (not queued) or *queued*, and `queued` is the only key to it:
//!
//! | state | `next` belongs to | leaves it by |
//! |---|---|---|
//! | idle | nobody | a waker whose swap of `queued` finds false: now queued, `next` is that waker's |
//! | queued, not yet on the stack | that waker | its compare-exchange of the head |
//! | queued, on the stack | nobody; it is fixed | the shard's swap of the head |
//! | queued, taken | the shard | the shard's swap of `queued` back to false: idle |
//!
//! The shard reads `next` *before* it gives the cell back, because the next waker may overwrite it
//! at once. And it gives the cell back *before* the task is polled: a wake that comes during the
//! poll then queues the cell again. A wake that finds the cell queued may return at once, because
//! the swap that will clear it comes later in that cell's order, synchronises with the wake, and
//! precedes the poll.
//!
//! # Why a repeated number does no harm (ABA)
//!
//! A waker reads the head, stores it as its `next` and compares the head again. Between the two the
//! stack may have been emptied and may have come to the same head. The push is right all the same:
//! all it asks is that `next` is the head at the moment of the exchange. Only a structure that pops
//! single nodes would have to know what lies under the head.
//!
//! # Wakes that come too late
//!
//! A slot is used again by later tasks. A waker of an earlier one is turned away by its generation
//! if it looks late enough, and else its wake reaches the present user of the slot, or nobody. Both
//! are harmless: a task must bear being polled without cause, and the shard passes over a slot
//! without a task.

use std::sync::OnceLock;

use crate::primitives::{
    CacheAligned,
    atomic::{
        AtomicBool, AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// Slots in the first bucket, as a power of two. Small under loom, which tracks every cell.
const FIRST_BUCKET_BITS: u32 = if cfg!(loom) { 1 } else { 6 };
const FIRST_BUCKET: u32 = 1 << FIRST_BUCKET_BITS;

/// Each bucket after the second doubles the table.
const BUCKETS: usize = 17;

/// How many slots a table can have, and so how many tasks a shard: about four million.
pub(crate) const SLOTS_MAX: u32 = FIRST_BUCKET << (BUCKETS - 1);

/// The end of the stack: not a slot.
const NONE: u32 = u32::MAX;

/// The wake-ups that wait for one shard.
pub(crate) struct Wakes {
    /// Invariant: `NONE`, or the slot of the newest cell of a list through `next` that ends in
    /// `NONE` and in which every cell is queued.
    head: CacheAligned<AtomicU32>,
    /// Invariant: a bucket is set once, by the shard, and has the cells of `bucket_of`.
    buckets: [OnceLock<Box<[Cell]>>; BUCKETS],
}

struct Cell {
    queued: AtomicBool,
    /// The slot pushed before this one. See the table above for whose it is.
    next: AtomicU32,
    /// The generation of the slot's present task.
    generation: AtomicU32,
}

impl Wakes {
    /// Makes a table without slots.
    pub(crate) fn new() -> Self {
        Self {
            head: CacheAligned::new(AtomicU32::new(NONE)),
            buckets: [const { OnceLock::new() }; BUCKETS],
        }
    }

    /// Makes sure that `slot` has a cell. For the shard.
    ///
    /// # Panics
    ///
    /// If `slot` is not below [`SLOTS_MAX`].
    pub(crate) fn ensure(&self, slot: u32) {
        assert!(
            slot < SLOTS_MAX,
            "task slot {slot} is beyond the limit of {SLOTS_MAX}"
        );
        let (bucket, _) = bucket_of(slot);
        // Only the shard gets here, so nobody waits in the lock: it is a pointer that is set once.
        self.buckets[bucket].get_or_init(|| {
            (0..bucket_len(bucket))
                .map(|_| Cell {
                    queued: AtomicBool::new(false),
                    next: AtomicU32::new(NONE),
                    generation: AtomicU32::new(0),
                })
                .collect()
        });
    }

    /// Sets which generation of `slot` is awake to wakes: at spawn, and at the end of the task.
    ///
    /// For the shard, and before the first waker of that generation is made.
    ///
    /// # Panics
    ///
    /// If the slot has no cell yet.
    pub(crate) fn set_generation(&self, slot: u32, generation: u32) {
        let cell = self
            .cell(slot)
            .expect("the shard ensures a slot before it uses it");
        // ORDERING: Relaxed; see the look in `push`.
        cell.generation.store(generation, Relaxed);
    }

    /// Wakes the task in `slot`; true if the caller must now announce it to the shard.
    ///
    /// From any thread, at any time. Unknown slots and stale generations are ignored. False also
    /// says that somebody else has announced this wake, or is about to: whoever pushed on the empty
    /// stack. As the shard takes the stack whole, one announcement is enough for all on it.
    pub(crate) fn push(&self, slot: u32, generation: u32) -> bool {
        let Some(cell) = self.cell(slot) else {
            return false;
        };
        // ORDERING: Relaxed is enough to never turn away a wake that matters. The shard stored our
        // generation before it made the first waker that carries it, and this waker descends from
        // that one by whatever brought it to this thread, so the store happened before this load.
        // Coherence then lets the load return that store or a later one; a later one means that the
        // task has ended. Seeing the earlier value too long only lets a stale wake through.
        if cell.generation.load(Relaxed) != generation {
            return false;
        }
        // ORDERING: AcqRel; pairs with the swap in `Taken::next`. Release: if the cell is queued
        // already, the swap that clears it reads from this one or from one after it, so the poll
        // that follows sees all that the caller did before it woke. Acquire: if the cell is idle,
        // the shard's read of `next` happened before our store to it.
        if cell.queued.swap(true, AcqRel) {
            return false;
        }
        self.link(slot, cell)
    }

    /// Takes all waiting wake-ups and hands out their slots in the order of the pushes. For the
    /// shard.
    ///
    /// If `wake` panics, the slots that it has not seen stay queued and on the stack.
    pub(crate) fn drain(&self, mut wake: impl FnMut(u32)) {
        if self.is_empty() {
            return;
        }
        // ORDERING: Acquire; pairs with the release in `link`: the cells' `next` are as they were
        // pushed. No release, as wakers learn nothing from the head but its value.
        let newest = self.head.swap(NONE, Acquire);
        let mut taken = Taken {
            wakes: self,
            oldest: self.reverse(newest),
        };
        while let Some(slot) = taken.next() {
            wake(slot);
        }
    }

    /// True if no wake-up waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // ORDERING: Relaxed. It cannot miss a wake whose announcement the shard has taken, as the
        // push happened before that; one that it does miss will be announced.
        self.head.load(Relaxed) == NONE
    }

    /// The cell of a slot, if there is one.
    #[inline]
    fn cell(&self, slot: u32) -> Option<&Cell> {
        if slot >= SLOTS_MAX {
            return None;
        }
        let (bucket, offset) = bucket_of(slot);
        self.buckets[bucket].get()?.get(offset)
    }

    /// The cell of a slot that is on the stack.
    fn listed(&self, slot: u32) -> &Cell {
        self.cell(slot)
            .expect("only slots with a cell get on the stack")
    }

    /// Pushes a cell that is queued and ours; true if the stack was empty.
    fn link(&self, slot: u32, cell: &Cell) -> bool {
        // ORDERING: Relaxed. The head is a number to compare and to store.
        let mut head = self.head.load(Relaxed);
        loop {
            // ORDERING: Relaxed; published by the exchange below.
            cell.next.store(head, Relaxed);
            // ORDERING: Release on success, pairs with the acquire swap in `drain`; later pushes
            // continue its release sequence. Relaxed on failure, as for the load.
            match self
                .head
                .compare_exchange_weak(head, slot, Release, Relaxed)
            {
                Ok(_) => return head == NONE,
                Err(now) => head = now,
            }
        }
    }

    /// Turns a taken list round, so that it begins with the oldest slot, and returns that.
    fn reverse(&self, mut newest: u32) -> u32 {
        let mut oldest = NONE;
        while newest != NONE {
            let cell = self.listed(newest);
            // ORDERING: Relaxed on both; the cell is queued and taken, so `next` is the shard's.
            let older = cell.next.load(Relaxed);
            cell.next.store(oldest, Relaxed);
            oldest = newest;
            newest = older;
        }
        oldest
    }
}

/// Slots that were taken off the stack and still wait to be handed out.
struct Taken<'a> {
    wakes: &'a Wakes,
    oldest: u32,
}

impl Taken<'_> {
    /// Gives the oldest cell back to the wakers, and its slot to the caller.
    fn next(&mut self) -> Option<u32> {
        if self.oldest == NONE {
            return None;
        }
        let slot = self.oldest;
        let cell = self.wakes.listed(slot);
        // ORDERING: Relaxed; `next` is the shard's until the swap below, whose release keeps this
        // read before the store of the waker that comes next.
        self.oldest = cell.next.load(Relaxed);
        // ORDERING: AcqRel; pairs with the swap in `push`, on both of its branches as told there.
        // It must be a swap: a plain store could follow a waker's swap in the cell's order without
        // synchronising with it, and the poll would then miss what that waker did.
        let was_queued = cell.queued.swap(false, AcqRel);
        debug_assert!(was_queued, "slot {slot} was on the stack but not queued");
        Some(slot)
    }
}

impl Drop for Taken<'_> {
    /// Puts back what a panic has left over: a cell that stayed queued without being on the stack
    /// would never be woken again.
    fn drop(&mut self) {
        while self.oldest != NONE {
            let slot = self.oldest;
            let cell = self.wakes.listed(slot);
            // ORDERING: Relaxed, as in `next`; read before `link` overwrites it.
            self.oldest = cell.next.load(Relaxed);
            self.wakes.link(slot, cell);
        }
    }
}

/// The bucket of a slot below `SLOTS_MAX`, and its place there.
///
/// The first bucket has the first `FIRST_BUCKET` slots; each later one has as many as all before it,
/// so the bucket follows from the highest bit of the slot and the place is the rest.
#[inline]
fn bucket_of(slot: u32) -> (usize, usize) {
    if slot < FIRST_BUCKET {
        return (0, slot as usize);
    }
    let high = slot.ilog2();
    (
        (high - FIRST_BUCKET_BITS + 1) as usize,
        (slot - (1 << high)) as usize,
    )
}

fn bucket_len(bucket: usize) -> usize {
    (FIRST_BUCKET as usize) << bucket.saturating_sub(1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{BUCKETS, SLOTS_MAX, Wakes, bucket_len, bucket_of};

    fn drained(wakes: &Wakes) -> Vec<u32> {
        let mut slots = Vec::new();
        wakes.drain(|slot| slots.push(slot));
        slots
    }

    fn table(slots: u32) -> Wakes {
        let wakes = Wakes::new();
        for slot in 0..slots {
            wakes.ensure(slot);
            wakes.set_generation(slot, 1);
        }
        wakes
    }

    #[test]
    fn buckets_hold_every_slot_once() {
        let mut expected = (0, 0);
        for slot in 0..SLOTS_MAX {
            assert_eq!(bucket_of(slot), expected);
            expected.1 += 1;
            if expected.1 == bucket_len(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(expected, (BUCKETS, 0));
        assert_eq!(SLOTS_MAX, 1 << 22);
    }

    #[test]
    fn slots_come_out_once_in_the_order_of_their_pushes() {
        let wakes = table(300);
        assert!(wakes.is_empty());
        assert!(wakes.push(7, 1));
        assert!(!wakes.push(299, 1));
        assert!(!wakes.push(7, 1));
        assert!(!wakes.push(0, 1));
        assert!(!wakes.is_empty());
        assert_eq!(drained(&wakes), [7, 299, 0]);
        assert!(wakes.is_empty());
        assert!(wakes.push(7, 1));
        assert_eq!(drained(&wakes), [7]);
        assert!(drained(&wakes).is_empty());
    }

    #[test]
    fn stale_generations_and_unknown_slots_are_ignored() {
        let wakes = table(1);
        wakes.set_generation(0, 2);
        assert!(!wakes.push(0, 1));
        assert!(!wakes.push(64, 1));
        assert!(!wakes.push(SLOTS_MAX, 1));
        assert!(!wakes.push(u32::MAX, 1));
        assert!(wakes.is_empty());
        assert!(wakes.push(0, 2));
    }

    #[test]
    fn a_wake_during_the_drain_is_not_lost() {
        let wakes = table(2);
        assert!(wakes.push(0, 1));
        let mut announce = false;
        wakes.drain(|slot| announce |= wakes.push(slot, 1));
        assert!(announce);
        assert_eq!(drained(&wakes), [0]);
    }

    #[test]
    fn a_panic_while_draining_keeps_the_rest() {
        let wakes = table(4);
        for slot in 0..4 {
            let _: bool = wakes.push(slot, 1);
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            wakes.drain(|slot| assert_ne!(slot, 1, "boom"));
        }));
        assert!(panicked.is_err());
        assert!(!wakes.push(3, 1));
        assert_eq!(drained(&wakes), [2, 3]);
    }
}

#[cfg(test)]
mod races {
    use super::Wakes;
    use crate::{
        inject::handshake::model::{MANY, Shard, explore, preemptions},
        primitives::{
            Arc,
            atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
            thread,
        },
    };

    /// One waker per entry of `slots`: it does its work, relaxed, and wakes that slot, time and
    /// again. A task is done when it was polled after the last work of each of its wakers.
    fn wakers(slots: &'static [u32]) {
        explore(preemptions(slots.len()), move || {
            let work: Vec<_> = slots.iter().map(|_| AtomicUsize::new(0)).collect();
            let shared = Arc::new((Shard::new(), Wakes::new(), work));
            for slot in slots {
                shared.1.ensure(*slot);
                shared.1.set_generation(*slot, 1);
            }
            let threads: Vec<_> = slots
                .iter()
                .enumerate()
                .map(|(index, slot)| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        let (shard, wakes, work) = &*shared;
                        for done in 1..=MANY {
                            work[index].store(done, Relaxed);
                            if wakes.push(*slot, 1) {
                                shard.announce();
                            }
                        }
                    })
                })
                .collect();
            let (shard, wakes, work) = &*shared;
            let mut done = vec![false; slots.len()];
            shard.run(0, || {
                wakes.drain(|woken| {
                    for (index, slot) in slots.iter().enumerate() {
                        done[index] |= *slot == woken && work[index].load(Relaxed) == MANY;
                    }
                });
                done.iter().all(|done| *done)
            });
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }

    #[test]
    fn two_wakers_of_one_task_are_heard() {
        wakers(&[0, 0]);
    }

    #[test]
    fn two_wakers_of_two_tasks_are_heard() {
        wakers(&[0, 1]);
    }

    #[test]
    fn three_wakers_of_one_task_are_heard() {
        wakers(&[0, 0, 0]);
    }

    #[test]
    fn three_wakers_of_two_tasks_are_heard() {
        wakers(&[0, 1, 0]);
    }

    #[test]
    fn three_wakers_of_three_tasks_are_heard() {
        wakers(&[0, 1, 2]);
    }

    /// The shard drains without being asked while two wakers push: after that, every cell is idle
    /// and off the stack, or queued and on it.
    #[test]
    fn no_cell_stays_queued_without_being_on_the_stack() {
        explore(3, || {
            let wakes = Arc::new(Wakes::new());
            for slot in 0..2 {
                wakes.ensure(slot);
            }
            let threads: Vec<_> = (0..2)
                .map(|slot| {
                    let wakes = Arc::clone(&wakes);
                    thread::spawn(move || {
                        let _: bool = wakes.push(slot, 0);
                        let _: bool = wakes.push(1 - slot, 0);
                    })
                })
                .collect();
            let mut seen = [0; 2];
            wakes.drain(|slot| seen[slot as usize] += 1);
            for thread in threads {
                thread.join().unwrap();
            }
            wakes.drain(|slot| seen[slot as usize] += 1);
            assert!(seen[0] >= 1 && seen[1] >= 1);
            assert!(wakes.is_empty());
            assert!(wakes.push(0, 0) && !wakes.push(1, 0));
            let mut slots = Vec::new();
            wakes.drain(|slot| slots.push(slot));
            assert_eq!(slots, [0, 1]);
        });
    }

    /// The slot changes hands while a waker of the old task and one of the new task wake it: the new
    /// one is heard, and nothing stays behind that would swallow a later wake.
    #[test]
    fn a_stale_wake_does_not_swallow_a_fresh_one() {
        explore(3, || {
            let work = AtomicBool::new(false);
            let shared = Arc::new((Shard::new(), Wakes::new(), work));
            shared.1.ensure(0);
            let stale = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    if shared.1.push(0, 0) {
                        shared.0.announce();
                    }
                })
            };
            shared.1.set_generation(0, 1);
            let fresh = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.2.store(true, Relaxed);
                    if shared.1.push(0, 1) {
                        shared.0.announce();
                    }
                })
            };
            let mut done = false;
            shared.0.run(0, || {
                shared.1.drain(|_| done |= shared.2.load(Relaxed));
                done
            });
            stale.join().unwrap();
            fresh.join().unwrap();
            shared.1.drain(|_| ());
            assert!(shared.1.push(0, 1));
        });
    }
}
