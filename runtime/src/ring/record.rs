//! Records at fixed addresses: slots, the pages they lie in, and the lists they stand in.
#![expect(
    unsafe_code,
    reason = "owns the pages, and the payloads in their slots"
)]

use std::cell::{Cell, UnsafeCell};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::task::Waker;

use super::backend::EntryKind;
use super::op::{Effects, Operation, Outcome, Pace};
use super::payload::{Erased, Payload, Storage, Vtable};

pub(super) const PAGE_SLOTS: usize = 64;
pub(super) const PAGE_SLOTS_U32: u32 = 64;
/// No slot: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// One record. Reached through shared references only, so that no unique borrow of it ever invalidates the addresses
/// the kernel was given.
#[repr(align(64))]
pub(super) struct Slot {
    /// Invariant: holds a payload of the type that `vtable` is for unless the state is [`State::Free`].
    payload: UnsafeCell<MaybeUninit<Storage>>,
    pub(super) vtable: Cell<&'static Vtable>,
    /// Whom to wake at the end. `None` while there is no handle.
    pub(super) waker: Cell<Option<Waker>>,
    pub(super) outcome: Cell<Option<Outcome>>,
    pub(super) generation: Cell<u32>,
    /// Neighbours in the backlog or the list of cancels; `next` also links free slots.
    previous: Cell<u32>,
    pub(super) next: Cell<u32>,
    pub(super) state: Cell<State>,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            payload: UnsafeCell::new(MaybeUninit::uninit()),
            vtable: Cell::new(&Vtable::EMPTY),
            waker: Cell::new(None),
            outcome: Cell::new(None),
            generation: Cell::new(0),
            previous: Cell::new(NONE),
            next: Cell::new(NONE),
            state: Cell::new(State::Free),
        }
    }

    fn storage(&self) -> NonNull<Storage> {
        NonNull::new(self.payload.get().cast::<Storage>()).expect("the address of a field")
    }

    /// Fills a free slot.
    pub(super) fn put<T: Operation>(&self, operation: T) {
        assert_eq!(self.state.get(), State::Free, "a slot holds one payload");
        // SAFETY: the slot is free, so the storage holds nothing and nobody points into it.
        unsafe { Erased::<T>::write(self.storage(), operation) };
        self.vtable.set(Erased::<T>::VTABLE);
    }

    /// Moves the payload out.
    ///
    /// # Safety
    ///
    /// * The slot holds a payload that [`put::<T>`](Self::put) wrote, and the kernel is done with it.
    /// * The caller frees the slot, so that the payload is taken once.
    pub(super) unsafe fn take<T: Operation>(&self) -> T {
        // SAFETY: by this function's contract.
        unsafe { Erased::<T>::read(self.storage()) }
    }

    /// Moves the payload out without knowing its type, together with the outcome if there is one.
    ///
    /// # Safety
    ///
    /// * The slot holds a payload, and the kernel is done with it.
    /// * The caller frees the slot, so that the payload is taken once.
    pub(super) unsafe fn take_payload(&self) -> Payload {
        // SAFETY: by this function's contract, and the invariant of the field.
        unsafe { Payload::take(self.storage(), self.vtable.get(), self.outcome.take()) }
    }

    /// Hands one completion to an operation of many. `None` if it is an operation of one.
    #[inline]
    pub(super) fn progress(&self, outcome: Outcome, effects: &mut Effects) -> Option<Pace> {
        let progress = self.vtable.get().progress?;
        assert!(
            self.state.get().in_kernel(),
            "only an operation in the kernel makes progress"
        );
        // SAFETY: the slot is in use, so it holds a payload of the vtable's type, which nobody borrows.
        Some(unsafe { progress(self.storage(), outcome, effects) })
    }

    /// Describes a queued operation to the kernel.
    pub(super) fn entry(&self) -> EntryKind {
        assert!(
            matches!(self.state.get(), State::Queued | State::Detached),
            "only a queued operation is described"
        );
        // SAFETY: the slot is in use, so it holds a payload of the vtable's type, which nobody borrows.
        unsafe { (self.vtable.get().entry)(self.storage()) }
    }
}

/// Where a record is in its life. [`op`](super::op) has the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Queued,
    /// Queued, and nobody waits for it.
    Detached,
    Submitted,
    Cancelling(Request),
    Orphaned(Request),
    Done,
}

/// How far the request to cancel an operation got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// None was made: the operation may run to its end.
    Unwanted,
    /// On the list of cancels to hand over.
    Listed,
    /// Handed over to the backend.
    Sent,
}

impl State {
    /// Whether the backend has the entry, so that the payload must stay as it is.
    pub(super) fn in_kernel(self) -> bool {
        match self {
            State::Submitted | State::Cancelling(_) | State::Orphaned(_) => true,
            State::Free | State::Queued | State::Detached | State::Done => false,
        }
    }
}

/// A block of slots at a fixed address. Freed by [`Page::free`], or not at all.
pub(super) struct Page(NonNull<[Slot; PAGE_SLOTS]>);

impl Page {
    pub(super) fn new() -> Page {
        let slots: Box<[Slot]> = (0..PAGE_SLOTS).map(|_| Slot::new()).collect();
        let Ok(slots) = <Box<[Slot; PAGE_SLOTS]>>::try_from(slots) else {
            unreachable!("collected exactly {PAGE_SLOTS} slots");
        };
        #[cfg(test)]
        super::inflight::tests::PAGES.set(super::inflight::tests::PAGES.get() + 1);
        Page(NonNull::from(Box::leak(slots)))
    }

    pub(super) fn slots(&self) -> &[Slot; PAGE_SLOTS] {
        // SAFETY: leaked from a box in `new`, given back by `free` only, which consumes the page. Only shared
        // references are made, so this aliases no unique one.
        unsafe { self.0.as_ref() }
    }

    pub(super) fn free(self) {
        #[cfg(test)]
        super::inflight::tests::PAGES.set(super::inflight::tests::PAGES.get() - 1);
        let page = ManuallyDrop::new(self);
        // SAFETY: leaked from a box in `new`; the page is consumed, so no reference to a slot is left.
        drop(unsafe { Box::from_raw(page.0.as_ptr()) });
    }
}

/// A doubly linked list through the slots, so that a record leaves it in constant time.
pub(super) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub(super) const EMPTY: List = List {
        head: NONE,
        tail: NONE,
    };

    pub(super) fn front(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub(super) fn push_back(&mut self, pages: &[Page], index: u32) {
        let slot = slot_of(pages, index);
        slot.previous.set(self.tail);
        slot.next.set(NONE);
        match self.tail {
            NONE => self.head = index,
            tail => slot_of(pages, tail).next.set(index),
        }
        self.tail = index;
    }

    /// The slot must be on this list.
    pub(super) fn unlink(&mut self, pages: &[Page], index: u32) {
        let slot = slot_of(pages, index);
        let (previous, next) = (slot.previous.get(), slot.next.get());
        match previous {
            NONE => self.head = next,
            previous => slot_of(pages, previous).next.set(next),
        }
        match next {
            NONE => self.tail = previous,
            next => slot_of(pages, next).previous.set(previous),
        }
    }
}

pub(super) fn slot_of(pages: &[Page], index: u32) -> &Slot {
    &pages[index as usize / PAGE_SLOTS].slots()[index as usize % PAGE_SLOTS]
}
