//! The records of running operations: where payloads live while the kernel may touch them.
//!
//! Plain bookkeeping without system calls. [`op`](super::op) tells the life of a record; this file enforces it.
//! Records live in pages that are never moved, so that an address inside a payload stays true until the record ends.
//! Small payloads lie in the record itself, larger ones in a box of their own.
//!
//! A finished record is used again, with its generation counted up. Pages are kept until the driver goes: memory is
//! bounded by the largest number of operations that ever ran at one time.
#![expect(
    unsafe_code,
    reason = "owns the type-erased payloads and the pages they live in"
)]

use std::any::type_name;
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::task::Waker;

use super::backend::{Entry, EntryKind};
use super::op::{Completion, Effects, Flags, OpId, Operation, Outcome, Token};

/// Payloads up to this size, and up to this alignment, need no box.
const INLINE_SIZE: usize = 128;
const PAGE_SLOTS: usize = 64;
const PAGE_SLOTS_U32: u32 = 64;
/// No slot: the end of a list.
const NONE: u32 = u32::MAX;

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
    /// Invariant: the number of records that are [`State::in_kernel`].
    in_kernel: usize,
    /// Set by [`Inflight::cancel_all`]: what starts from now on is cancelled at once.
    closing: bool,
    /// Completions that named no running operation.
    stale: u64,
}

/// The right to one operation: exactly one key exists for each record whose handle is alive.
///
/// Not `Copy`, made by [`Inflight::start`] only and spent by whoever ends the handle, so that the type of the payload
/// is known wherever it is taken out.
pub(crate) struct Key<T> {
    driver: DriverId,
    id: OpId,
    /// `!Send`: the record belongs to this thread's driver.
    payload: PhantomData<*const T>,
}

/// Tells the drivers of one thread apart, so that a key that outlived its driver does not open a record of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DriverId(u64);

/// What [`Inflight::poll`] found.
#[derive(Debug)]
pub(crate) enum Polled<T> {
    /// The operation ended; here is its payload.
    Ready(T, Outcome),
    /// It runs, and the waker it knows wakes the same task as the one given.
    Waiting(Key<T>),
    /// It runs, and has to be told a new waker with [`Inflight::set_waker`].
    NewWaker(Key<T>),
}

/// Where a record is in its life. [`op`](super::op) has the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Queued,
    Submitted,
    Cancelling(Request),
    Orphaned(Request),
    Done,
}

/// How far the request to cancel an operation got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// On the list of cancels to hand over.
    Listed,
    /// Handed over to the backend.
    Sent,
}

impl State {
    /// Whether the backend has the entry, so that the payload must stay as it is.
    fn in_kernel(self) -> bool {
        match self {
            State::Submitted | State::Cancelling(_) | State::Orphaned(_) => true,
            State::Free | State::Queued | State::Done => false,
        }
    }
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
            in_kernel: 0,
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
        debug_assert_eq!(
            slot.state.get(),
            State::Free,
            "slot {index} was on the free list"
        );
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
            debug_assert_eq!(
                slot.state.get(),
                State::Queued,
                "slot {index} is in the backlog"
            );
            if !push(&Entry {
                kind: slot.entry(),
                token: self.id_of(index).token(),
            }) {
                return false;
            }
            slot.state.set(State::Submitted);
            self.in_kernel += 1;
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
            // Says nothing about the target: see the rules in `op`.
            Token::Cancel(_) => return,
        };
        let Some(slot) = self.running_slot(id) else {
            self.stale += 1;
            return;
        };
        // The first completion carries the result. One that follows it (a zero-copy send giving its buffer back)
        // only ends the record.
        if slot.outcome.get().is_none() {
            slot.outcome.set(Some(Outcome {
                result: completion.result,
                flags: completion.flags,
            }));
        }
        if !completion.flags.contains(Flags::MORE) {
            self.finish(id.index, effects);
        }
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
    #[expect(
        clippy::needless_pass_by_value,
        reason = "spends the key: the record is not its holder's any more"
    )]
    pub(crate) fn drop_handle<T: Operation>(&mut self, key: Key<T>) -> Garbage {
        if !self.owns(&key) {
            return Garbage::default();
        }
        let index = key.id.index;
        let slot = self.slot(index);
        let waker = slot.waker.take();
        let payload = match slot.state.get() {
            State::Queued => {
                self.backlog.unlink(&self.pages, index);
                self.live -= 1;
                Some(self.discard(index))
            }
            State::Done => Some(self.discard(index)),
            State::Submitted => {
                slot.state.set(State::Orphaned(Request::Listed));
                self.cancels.push_back(&self.pages, index);
                None
            }
            State::Cancelling(request) => {
                slot.state.set(State::Orphaned(request));
                None
            }
            state @ (State::Free | State::Orphaned(_)) => {
                unreachable!("slot {index} has a handle in state {state:?}")
            }
        };
        Garbage { payload, waker }
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
                State::Queued => {
                    self.backlog.unlink(&self.pages, index);
                    self.live -= 1;
                    slot.outcome.set(Some(Outcome::CANCELLED));
                    slot.state.set(State::Done);
                    effects.wakers.extend(slot.waker.take());
                }
                State::Submitted | State::Cancelling(Request::Sent) => {
                    slot.state.set(State::Cancelling(Request::Listed));
                    self.cancels.push_back(&self.pages, index);
                }
                State::Orphaned(Request::Sent) => {
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

    fn finish(&mut self, index: u32, effects: &mut Effects) {
        let slot = slot_of(&self.pages, index);
        let state = slot.state.get();
        debug_assert!(
            state.in_kernel(),
            "slot {index} completed in state {state:?}"
        );
        self.in_kernel -= 1;
        self.live -= 1;
        match state {
            State::Cancelling(Request::Listed) | State::Orphaned(Request::Listed) => {
                self.cancels.unlink(&self.pages, index);
            }
            _ => {}
        }
        if let State::Orphaned(_) = state {
            let payload = Some(self.discard(index));
            effects.garbage.push_back(Garbage {
                payload,
                waker: None,
            });
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
        let payload = Payload {
            // SAFETY: the record is in use, so it holds a payload; freeing it below makes this the only copy.
            storage: unsafe { slot.payload.get().read() },
            vtable: slot.vtable.get(),
            outcome: slot.outcome.take(),
            home: PhantomData,
        };
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
                    State::Queued | State::Done => {
                        let payload = Payload {
                            // SAFETY: the record is in use, so it holds a payload; the next line makes this the only
                            // copy.
                            storage: unsafe { slot.payload.get().read() },
                            vtable: slot.vtable.get(),
                            outcome: slot.outcome.take(),
                            home: PhantomData,
                        };
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
            .field("in_kernel", &self.in_kernel)
            .field("closing", &self.closing)
            .field("stale", &self.stale)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &self.id)
            .field("payload", &type_name::<T>())
            .finish()
    }
}

impl DriverId {
    fn next() -> DriverId {
        thread_local! {
            static NEXT: Cell<u64> = const { Cell::new(0) };
        }
        DriverId(NEXT.replace(NEXT.get() + 1))
    }
}

/// What an ended handle or operation left behind. Dropping it runs destructors and orphan hooks: code of users.
#[derive(Debug, Default)]
#[must_use = "dropped while the driver is borrowed, the destructors in here cannot use it"]
pub(crate) struct Garbage {
    #[expect(dead_code, reason = "held for its destructor")]
    payload: Option<Payload>,
    #[expect(dead_code, reason = "held for its destructor")]
    waker: Option<Waker>,
}

/// A payload that was moved out of its record.
struct Payload {
    /// Invariant: holds the payload of the type that `vtable` is for.
    storage: MaybeUninit<Storage>,
    vtable: &'static Vtable,
    /// The outcome, unless the operation never reached the kernel.
    outcome: Option<Outcome>,
    /// `!Send`: payloads hold things that stay on their shard.
    home: PhantomData<*const ()>,
}

impl Drop for Payload {
    fn drop(&mut self) {
        let storage = NonNull::from(&mut self.storage).cast::<Storage>();
        match self.outcome {
            // SAFETY: by the invariant of `storage`; it is not looked at again.
            Some(outcome) => unsafe { (self.vtable.orphan)(storage, outcome) },
            // SAFETY: by the invariant of `storage`; it is not looked at again.
            None => unsafe { (self.vtable.drop)(storage) },
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload")
            .field("name", &self.vtable.name)
            .field("outcome", &self.outcome)
            .finish()
    }
}

/// Room for a payload, or for the pointer to its box.
#[repr(C, align(16))]
struct Storage([u8; INLINE_SIZE]);

/// One record. Reached through shared references only, so that no unique borrow of it ever invalidates the addresses
/// the kernel was given.
#[repr(align(64))]
struct Slot {
    /// Invariant: holds a payload of the type that `vtable` is for unless the state is [`State::Free`].
    payload: UnsafeCell<MaybeUninit<Storage>>,
    vtable: Cell<&'static Vtable>,
    /// Whom to wake at the end. `None` while there is no handle.
    waker: Cell<Option<Waker>>,
    outcome: Cell<Option<Outcome>>,
    generation: Cell<u32>,
    /// Neighbours in the backlog or the list of cancels; `next` also links free slots.
    previous: Cell<u32>,
    next: Cell<u32>,
    state: Cell<State>,
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
    fn put<T: Operation>(&self, operation: T) {
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
    unsafe fn take<T: Operation>(&self) -> T {
        // SAFETY: by this function's contract.
        unsafe { Erased::<T>::read(self.storage()) }
    }

    /// Describes a queued operation to the kernel.
    fn entry(&self) -> EntryKind {
        assert_eq!(
            self.state.get(),
            State::Queued,
            "only a queued operation is described"
        );
        // SAFETY: the slot is in use, so it holds a payload of the vtable's type, which nobody borrows.
        unsafe { (self.vtable.get().entry)(self.storage()) }
    }
}

/// The operations on a payload whose type is forgotten.
struct Vtable {
    name: &'static str,
    entry: unsafe fn(NonNull<Storage>) -> EntryKind,
    orphan: unsafe fn(NonNull<Storage>, Outcome),
    drop: unsafe fn(NonNull<Storage>),
}

impl Vtable {
    /// Of a slot that was never used.
    const EMPTY: Vtable = Vtable {
        name: "none",
        entry: |_| EntryKind::Nop,
        orphan: |_, _| {},
        drop: |_| {},
    };
}

/// How a payload of type `T` lies in its storage: itself if it fits, else as the address of its box.
struct Erased<T>(PhantomData<T>);

impl<T: Operation> Erased<T> {
    const FITS: bool =
        size_of::<T>() <= size_of::<Storage>() && align_of::<T>() <= align_of::<Storage>();

    const VTABLE: &'static Vtable = &Vtable {
        name: T::NAME,
        entry: Self::entry,
        orphan: Self::orphan,
        drop: Self::drop,
    };

    /// # Safety
    ///
    /// `storage` is valid for writes and holds nothing.
    unsafe fn write(storage: NonNull<Storage>, operation: T) {
        if Self::FITS {
            // SAFETY: valid by the contract, large and aligned enough by `FITS`.
            unsafe { storage.cast::<T>().write(operation) };
        } else {
            let boxed = Box::into_raw(Box::new(operation));
            // SAFETY: valid by the contract; a pointer fits.
            unsafe { storage.cast::<*mut T>().write(boxed) };
        }
    }

    /// # Safety
    ///
    /// `storage` holds what [`write`](Self::write) put there, and is not read again.
    unsafe fn read(storage: NonNull<Storage>) -> T {
        if Self::FITS {
            // SAFETY: `write` put a `T` there.
            unsafe { storage.cast::<T>().read() }
        } else {
            // SAFETY: `write` put the address of a box there.
            let boxed = unsafe { storage.cast::<*mut T>().read() };
            // SAFETY: `write` took it from a box, and it is taken once by the contract.
            *unsafe { Box::from_raw(boxed) }
        }
    }

    /// # Safety
    ///
    /// `storage` holds what [`write`](Self::write) put there, and nothing borrows it.
    unsafe fn entry(storage: NonNull<Storage>) -> EntryKind {
        let mut operation = if Self::FITS {
            storage.cast::<T>()
        } else {
            // SAFETY: `write` put the address of a box there, which is not null.
            unsafe { NonNull::new_unchecked(storage.cast::<*mut T>().read()) }
        };
        // SAFETY: a valid `T` that nothing else borrows, by the contract.
        unsafe { operation.as_mut() }.entry()
    }

    /// # Safety
    ///
    /// As for [`read`](Self::read).
    unsafe fn orphan(storage: NonNull<Storage>, outcome: Outcome) {
        // SAFETY: by this function's contract.
        unsafe { Self::read(storage) }.orphan(outcome);
    }

    /// # Safety
    ///
    /// As for [`read`](Self::read).
    unsafe fn drop(storage: NonNull<Storage>) {
        // SAFETY: by this function's contract.
        drop(unsafe { Self::read(storage) });
    }
}

/// A block of slots at a fixed address. Freed by [`Page::free`], or not at all.
struct Page(NonNull<[Slot; PAGE_SLOTS]>);

impl Page {
    fn new() -> Page {
        let slots: Box<[Slot]> = (0..PAGE_SLOTS).map(|_| Slot::new()).collect();
        let Ok(slots) = <Box<[Slot; PAGE_SLOTS]>>::try_from(slots) else {
            unreachable!("collected exactly {PAGE_SLOTS} slots");
        };
        #[cfg(test)]
        tests::PAGES.set(tests::PAGES.get() + 1);
        Page(NonNull::from(Box::leak(slots)))
    }

    fn slots(&self) -> &[Slot; PAGE_SLOTS] {
        // SAFETY: leaked from a box in `new`, given back by `free` only, which consumes the page. Only shared
        // references are made, so this aliases no unique one.
        unsafe { self.0.as_ref() }
    }

    fn free(self) {
        #[cfg(test)]
        tests::PAGES.set(tests::PAGES.get() - 1);
        let page = ManuallyDrop::new(self);
        // SAFETY: leaked from a box in `new`; the page is consumed, so no reference to a slot is left.
        drop(unsafe { Box::from_raw(page.0.as_ptr()) });
    }
}

/// A doubly linked list through the slots, so that a record leaves it in constant time.
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: List = List {
        head: NONE,
        tail: NONE,
    };

    fn front(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    fn push_back(&mut self, pages: &[Page], index: u32) {
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
    fn unlink(&mut self, pages: &[Page], index: u32) {
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

fn slot_of(pages: &[Page], index: u32) -> &Slot {
    &pages[index as usize / PAGE_SLOTS].slots()[index as usize % PAGE_SLOTS]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::tests::records::Inline;

    thread_local! {
        /// How many pages this thread allocated and did not free.
        pub(super) static PAGES: Cell<usize> = const { Cell::new(0) };
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
