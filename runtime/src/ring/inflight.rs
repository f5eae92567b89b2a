//! The records of running operations: where payloads live while the kernel may touch them.
//!
//! Plain bookkeeping without system calls. [`op`](super::op) tells the life of a record; this file enforces it.
//! Records live in pages that are never moved, so that an address inside a payload stays true until the record ends.
//!
//! A finished record is used again, with its generation counted up. Pages are kept until the driver goes: memory is
//! bounded by the largest number of operations that ever ran at one time.
#![expect(unsafe_code, reason = "decides when a payload leaves its record")]

use std::fmt;
use std::marker::PhantomData;
use std::task::Waker;

use super::backend::{Entry, EntryKind};
use super::key::DriverId;
pub(crate) use super::key::{Key, Polled};
use super::op::{Completion, Effects, Flags, OpId, Operation, Outcome, Pace, Token};
use super::payload::{Garbage, Payload};
use super::record::{List, NONE, PAGE_SLOTS, PAGE_SLOTS_U32, Page, Request, Slot, State, slot_of};
use crate::task::{TaskId, woken_task};

/// All operations of one driver.
pub(crate) struct Inflight {
    id: DriverId,
    pages: Vec<Page>,
    /// Head of the list of free slots, linked through `next`.
    free: u32,
    /// Records in state [`State::Queued`], oldest first.
    backlog: List,
    /// Records whose cancel was not handed over yet ([`Request::Listed`]), oldest first.
    cancels: List,
    /// Invariant: the number of records that are queued or [`State::in_kernel`].
    live: usize,
    /// Set by [`Inflight::cancel_all`]: what starts from now on is cancelled at once.
    closing: bool,
    /// Completions that named no running operation.
    stale: u64,
}

impl Inflight {
    pub(crate) fn new() -> Inflight {
        Inflight {
            id: DriverId::next(),
            pages: Vec::new(),
            free: NONE,
            backlog: List::EMPTY,
            cancels: List::EMPTY,
            live: 0,
            closing: false,
            stale: 0,
        }
    }

    /// Takes over the payload and queues the operation.
    ///
    /// After [`cancel_all`](Self::cancel_all) it is born cancelled instead, and never reaches the backend.
    pub(crate) fn start<T: Operation>(&mut self, operation: T, waker: Option<Waker>) -> Key<T> {
        let index = self.take_free_slot();
        let slot = self.slot(index);
        let key = Key {
            driver: self.id,
            id: OpId {
                index,
                generation: slot.generation.get(),
            },
            payload: PhantomData,
        };
        slot.put(operation);
        slot.outcome.set(None);
        slot.waker.set(waker);
        if self.closing {
            slot.outcome.set(Some(Outcome::CANCELLED));
            slot.state.set(State::Done);
            return key;
        }
        slot.state.set(State::Queued);
        self.live += 1;
        self.backlog.push_back(&self.pages, index);
        key
    }

    /// Offers cancels, then queued operations, to `push` until it refuses one. Returns whether all were taken.
    pub(crate) fn flush(&mut self, mut push: impl FnMut(&Entry) -> bool) -> bool {
        while let Some(index) = self.cancels.front() {
            let id = self.id_of(index);
            let kind = EntryKind::Cancel { target: id.token() };
            if !push(&Entry {
                kind,
                token: id.cancel_token(),
            }) {
                return false;
            }
            self.cancels.unlink(&self.pages, index);
            let slot = self.slot(index);
            slot.state.set(match slot.state.get() {
                State::Cancelling(Request::Listed) => State::Cancelling(Request::Sent),
                State::Orphaned(Request::Listed) => State::Orphaned(Request::Sent),
                other => unreachable!("slot {index} is on the cancel list in state {other:?}"),
            });
        }
        while let Some(index) = self.backlog.front() {
            let slot = self.slot(index);
            let submitted = match slot.state.get() {
                State::Queued => State::Submitted,
                State::Detached => State::Orphaned(Request::Unwanted),
                other => unreachable!("slot {index} is in the backlog in state {other:?}"),
            };
            if !push(&Entry {
                kind: slot.entry(),
                token: self.id_of(index).token(),
            }) {
                return false;
            }
            slot.state.set(submitted);
            self.backlog.unlink(&self.pages, index);
        }
        true
    }

    /// Whether [`flush`](Self::flush) has something to offer.
    pub(crate) fn wants_flush(&self) -> bool {
        self.cancels.front().is_some() || self.backlog.front().is_some()
    }

    /// Takes note of one completion. Whom to wake and what to drop goes to `effects`.
    pub(crate) fn complete(&mut self, completion: Completion, effects: &mut Effects) {
        let id = match Token::decode(completion.token) {
            Token::Operation(id) => id,
            // Ends nothing: see the rules in `op`.
            Token::Cancel(id) => return self.note_cancel(id, completion.result),
        };
        let Some(slot) = self.running_slot(id) else {
            self.stale += 1;
            return;
        };
        let outcome = Outcome {
            result: completion.result,
            flags: completion.flags,
        };
        let is_final = !completion.flags.contains(Flags::MORE);
        let pace = slot.progress(outcome, effects);
        // The first completion carries the result. One that follows it (a zero-copy send giving its buffer back)
        // only ends the record.
        if slot.outcome.get().is_none() {
            slot.outcome.set(Some(outcome));
        }
        if is_final {
            self.finish(id.index, effects);
        } else if let Some(pace) = pace {
            effects.wakers.extend(slot.waker.take());
            if pace == Pace::Stop {
                self.stop(id.index);
            }
        }
    }

    /// Asks for the cancel of an operation again if the kernel did not find it where it can be cancelled.
    fn note_cancel(&mut self, id: OpId, result: i32) {
        let Some(slot) = self.running_slot(id) else {
            return;
        };
        // A send without copying that has sent only waits for its buffer, which cannot be hurried.
        let is_hidden = slot.vtable.get().can_hide && slot.outcome.get().is_none();
        if result != -libc::ENOENT || !is_hidden {
            return;
        }
        slot.state.set(match slot.state.get() {
            State::Cancelling(Request::Sent) => State::Cancelling(Request::Listed),
            State::Orphaned(Request::Sent) => State::Orphaned(Request::Listed),
            _ => return,
        });
        self.cancels.push_back(&self.pages, id.index);
    }

    /// Asks that an operation of many completions end early, unless that was asked before. Its handle stays.
    fn stop(&mut self, index: u32) {
        let slot = slot_of(&self.pages, index);
        if slot.state.get() == State::Submitted {
            slot.state.set(State::Cancelling(Request::Listed));
            self.cancels.push_back(&self.pages, index);
        }
    }

    fn cancel_queued(&mut self, index: u32, effects: &mut Effects) {
        let slot = slot_of(&self.pages, index);
        self.backlog.unlink(&self.pages, index);
        self.live -= 1;
        slot.outcome.set(Some(Outcome::CANCELLED));
        slot.state.set(State::Done);
        effects.wakers.extend(slot.waker.take());
    }

    /// Takes the result out if the operation ended, else says whether it knows whom to wake.
    ///
    /// # Panics
    ///
    /// If the key belongs to another driver.
    pub(crate) fn poll<T: Operation>(&mut self, key: Key<T>, waker: &Waker) -> Polled<T> {
        assert!(
            self.owns(&key),
            "an operation was polled outside of the shard that started it"
        );
        let slot = self.slot(key.id.index);
        if slot.state.get() == State::Done {
            let outcome = slot
                .outcome
                .take()
                .expect("a finished operation has an outcome");
            // SAFETY: the key proves that `start::<T>` filled this record and that nobody took the payload since.
            let payload = unsafe { slot.take::<T>() };
            self.free_slot(key.id.index);
            return Polled::Ready(payload, outcome);
        }
        let known = slot.waker.take();
        let same = known.as_ref().is_some_and(|known| known.will_wake(waker));
        slot.waker.set(known);
        if same {
            Polled::Waiting(key)
        } else {
            Polled::NewWaker(key)
        }
    }

    /// Tells whom to wake at the next completion of an operation of many. `Err` gives the waker back: it has ended, and
    /// [`poll`](Self::poll) takes it.
    ///
    /// `Ok` holds the waker that was replaced, to be dropped once the driver is free.
    pub(crate) fn watch<T: Operation>(
        &mut self,
        key: &Key<T>,
        waker: Waker,
    ) -> Result<Option<Waker>, Waker> {
        assert!(
            self.owns(key),
            "an operation was polled outside of the shard that started it"
        );
        if self.slot(key.id.index).state.get() == State::Done {
            return Err(waker);
        }
        Ok(self.set_waker(key, waker))
    }

    /// The first outcome of an operation that goes on, or has ended.
    pub(crate) fn first_outcome<T: Operation>(&self, key: &Key<T>) -> Option<Outcome> {
        self.owns(key)
            .then(|| self.slot(key.id.index).outcome.get())
            .flatten()
    }

    /// Remembers whom to wake. Returns the waker it replaces, to be dropped once the driver is free.
    pub(crate) fn set_waker<T: Operation>(&mut self, key: &Key<T>, waker: Waker) -> Option<Waker> {
        assert!(
            self.owns(key),
            "an operation was polled outside of the shard that started it"
        );
        self.slot(key.id.index).waker.replace(Some(waker))
    }

    /// The future that waited is gone. What to drop is handed back, to be dropped once the driver is free.
    ///
    /// A key of another driver is ignored: that driver is gone, or will dispose of the record when it goes.
    pub(crate) fn drop_handle<T: Operation>(&mut self, key: Key<T>) -> Garbage {
        if !self.owns(&key) {
            return Garbage::default();
        }
        let index = key.id.index;
        let slot = self.slot(index);
        match slot.state.get() {
            State::Queued => {
                let waker = slot.waker.take();
                self.backlog.unlink(&self.pages, index);
                self.live -= 1;
                let payload = Some(self.discard(index));
                Garbage::new(payload, waker)
            }
            State::Submitted => {
                let waker = slot.waker.take();
                slot.state.set(State::Orphaned(Request::Listed));
                self.cancels.push_back(&self.pages, index);
                Garbage::new(None, waker)
            }
            _ => self.detach(key),
        }
    }

    /// Nobody waits any more, but the operation shall run to its end, which is then that of an orphan. Otherwise as
    /// [`drop_handle`](Self::drop_handle).
    #[expect(
        clippy::needless_pass_by_value,
        reason = "spends the key: the record is not its holder's any more"
    )]
    pub(crate) fn detach<T: Operation>(&mut self, key: Key<T>) -> Garbage {
        if !self.owns(&key) {
            return Garbage::default();
        }
        let index = key.id.index;
        let slot = self.slot(index);
        let waker = slot.waker.take();
        let payload = match slot.state.get() {
            State::Queued => {
                slot.state.set(State::Detached);
                None
            }
            State::Submitted => {
                slot.state.set(State::Orphaned(Request::Unwanted));
                None
            }
            State::Cancelling(request) => {
                slot.state.set(State::Orphaned(request));
                None
            }
            State::Done => Some(self.discard(index)),
            state @ (State::Free | State::Detached | State::Orphaned(_)) => {
                unreachable!("slot {index} has a handle in state {state:?}")
            }
        };
        Garbage::new(payload, waker)
    }

    /// Cancels everything that runs, and everything that starts from now on.
    ///
    /// May be called again: operations whose cancel was answered but which did not end are asked once more.
    pub(crate) fn cancel_all(&mut self, effects: &mut Effects) {
        self.closing = true;
        let slot_count =
            u32::try_from(self.pages.len() * PAGE_SLOTS).expect("bounded by OpId::INDEX_END");
        for index in 0..slot_count {
            let slot = slot_of(&self.pages, index);
            match slot.state.get() {
                State::Free | State::Done => {}
                State::Cancelling(Request::Listed) | State::Orphaned(Request::Listed) => {}
                State::Queued => self.cancel_queued(index, effects),
                State::Detached => {
                    self.backlog.unlink(&self.pages, index);
                    self.live -= 1;
                    let payload = Some(self.discard(index));
                    effects.garbage.push_back(Garbage::new(payload, None));
                }
                State::Submitted | State::Cancelling(_) => {
                    slot.state.set(State::Cancelling(Request::Listed));
                    self.cancels.push_back(&self.pages, index);
                }
                State::Orphaned(Request::Sent | Request::Unwanted) => {
                    slot.state.set(State::Orphaned(Request::Listed));
                    self.cancels.push_back(&self.pages, index);
                }
            }
        }
    }

    /// The number of operations that are queued or with the kernel.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// The number of completions that named no running operation.
    #[cfg(test)]
    pub(super) fn stale(&self) -> u64 {
        self.stale
    }

    /// Whether [`cancel_all`](Self::cancel_all) was called.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// The names of the operations the kernel still has.
    pub(crate) fn in_kernel(&self) -> impl Iterator<Item = &'static str> {
        self.pages
            .iter()
            .flat_map(Page::slots)
            .filter(|slot| slot.state.get().in_kernel())
            .map(|slot| slot.vtable.get().name)
    }

    /// Tells of every operation that has not ended: its name, and the task that waits for it.
    pub(crate) fn each(&self, mut tell: impl FnMut(&'static str, Option<TaskId>)) {
        let slots = self.pages.iter().flat_map(Page::slots);
        for slot in slots.filter(|slot| !matches!(slot.state.get(), State::Free | State::Done)) {
            // Taken out and put back: cloning it may be anyone's code.
            let waker = slot.waker.take();
            let task = waker.as_ref().and_then(woken_task);
            slot.waker.set(waker);
            tell(slot.vtable.get().name, task);
        }
    }

    fn finish(&mut self, index: u32, effects: &mut Effects) {
        let slot = slot_of(&self.pages, index);
        let state = slot.state.get();
        debug_assert!(
            state.in_kernel(),
            "slot {index} completed in state {state:?}"
        );
        self.live -= 1;
        match state {
            State::Cancelling(Request::Listed) | State::Orphaned(Request::Listed) => {
                self.cancels.unlink(&self.pages, index);
            }
            _ => {}
        }
        if let State::Orphaned(_) = state {
            let payload = Some(self.discard(index));
            effects.garbage.push_back(Garbage::new(payload, None));
        } else {
            slot.state.set(State::Done);
            effects.wakers.extend(slot.waker.take());
        }
    }

    /// Takes the payload out of a record the kernel is done with, and frees the record.
    fn discard(&mut self, index: u32) -> Payload {
        let slot = self.slot(index);
        debug_assert!(
            slot.state.get() != State::Free,
            "slot {index} is freed for the second time"
        );
        // SAFETY: the record is in use, so it holds a payload; it is freed below.
        let payload = unsafe { slot.take_payload() };
        self.free_slot(index);
        payload
    }

    fn owns<T>(&self, key: &Key<T>) -> bool {
        let owns = key.driver == self.id;
        debug_assert!(
            !owns || self.id_of(key.id.index) == key.id,
            "the record of a living key was freed"
        );
        owns
    }

    /// The slot of an operation the kernel has, or `None` if `id` names no such.
    fn running_slot(&self, id: OpId) -> Option<&Slot> {
        let page = self.pages.get(id.index as usize / PAGE_SLOTS)?;
        let slot = &page.slots()[id.index as usize % PAGE_SLOTS];
        (slot.generation.get() == id.generation && slot.state.get().in_kernel()).then_some(slot)
    }

    fn slot(&self, index: u32) -> &Slot {
        slot_of(&self.pages, index)
    }

    fn id_of(&self, index: u32) -> OpId {
        OpId {
            index,
            generation: self.slot(index).generation.get(),
        }
    }

    fn take_free_slot(&mut self) -> u32 {
        if self.free == NONE {
            self.add_page();
        }
        let index = self.free;
        self.free = self.slot(index).next.get();
        index
    }

    fn free_slot(&mut self, index: u32) {
        let free = self.free;
        let slot = self.slot(index);
        slot.generation.set(slot.generation.get().wrapping_add(1));
        slot.state.set(State::Free);
        slot.next.set(free);
        self.free = index;
    }

    /// Adds a page and puts its slots on the free list, lowest first.
    #[cold]
    fn add_page(&mut self) {
        let first = self.pages.len() * PAGE_SLOTS;
        let end = u32::try_from(first + PAGE_SLOTS).unwrap_or(u32::MAX);
        assert!(
            end <= OpId::INDEX_END,
            "more than {first} operations in flight on one shard"
        );
        self.pages.push(Page::new());
        for index in (end - PAGE_SLOTS_U32..end).rev() {
            self.slot(index).next.set(self.free);
            self.free = index;
        }
    }
}

impl Drop for Inflight {
    /// Frees what the kernel does not have. What it has is leaked: closing a ring does not end its operations, and
    /// memory that is never freed can be written to without harm.
    fn drop(&mut self) {
        for page in self.pages.drain(..) {
            let mut is_shared = false;
            for slot in page.slots() {
                match slot.state.get() {
                    State::Free => {}
                    State::Queued | State::Detached | State::Done => {
                        // SAFETY: the record is in use, so it holds a payload; the next line frees it.
                        let payload = unsafe { slot.take_payload() };
                        slot.state.set(State::Free);
                        drop(payload);
                        drop(slot.waker.take());
                    }
                    State::Submitted | State::Cancelling(_) | State::Orphaned(_) => {
                        is_shared = true;
                    }
                }
            }
            if !is_shared {
                page.free();
            }
        }
    }
}

impl fmt::Debug for Inflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflight")
            .field("live", &self.live)
            .field("closing", &self.closing)
            .field("stale", &self.stale)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::ring::tests::records::Inline;

    thread_local! {
        /// How many pages this thread allocated and did not free.
        pub(in crate::ring) static PAGES: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_record_takes_three_cache_lines() {
        assert_eq!(size_of::<Slot>(), 192);
    }

    #[test]
    fn pages_are_freed_unless_the_kernel_has_a_record_in_them() {
        for handed_over in [0, 1, PAGE_SLOTS + 1] {
            let before = PAGES.get();
            let mut inflight = Inflight::new();
            for _ in 0..2 * PAGE_SLOTS {
                inflight.start(Inline([0; 8]), None);
            }
            assert_eq!(PAGES.get() - before, 2);
            let mut count = 0..handed_over;
            inflight.flush(|_| count.next().is_some());
            drop(inflight);
            assert_eq!(
                PAGES.get() - before,
                handed_over.div_ceil(PAGE_SLOTS),
                "{handed_over} handed over"
            );
        }
    }

    #[test]
    fn records_are_used_again() {
        let before = PAGES.get();
        let mut inflight = Inflight::new();
        for round in 0..10 * PAGE_SLOTS {
            let key = inflight.start(Inline([0; 8]), None);
            assert_eq!(
                key.id,
                OpId {
                    index: 0,
                    generation: u32::try_from(round).unwrap()
                }
            );
            drop(inflight.drop_handle(key));
        }
        assert_eq!(PAGES.get() - before, 1);
    }
}
