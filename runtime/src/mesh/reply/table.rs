//! The table of a shard's reply slots, and how a value of any type fits into one.

#![expect(
    unsafe_code,
    reason = "stores values of any type in fixed slots, typed by generation"
)]

use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;
use std::task::{Poll, Waker};

use super::due::is_before;
use super::{Place, Unanswered};

/// Words of a value that is stored in the slot itself; larger ones are boxed.
const INLINE_WORDS: usize = 4;

type Storage = [MaybeUninit<u64>; INLINE_WORDS];

const fn is_inline<T>() -> bool {
    size_of::<T>() <= size_of::<Storage>() && align_of::<T>() <= align_of::<Storage>()
}

/// The table of a shard's reply slots.
#[derive(Debug)]
pub(crate) struct Replies {
    entries: Vec<Entry>,
    free: u32,
    open: usize,
    /// The tick of the next look for overdue slots; zero if there is none.
    next_look: u32,
}

const NO_SLOT: u32 = u32::MAX;
/// Where a slot's number would stand: the answer is awaited further down the stack.
pub(super) const ON_THE_STACK: u32 = u32::MAX - 1;

struct Entry {
    /// Zero while the entry is free.
    generation: u64,
    content: Content,
    next_free: u32,
    /// The tick after which the entry is overdue, if it still waits; zero for never.
    due: u32,
}

pub(super) enum Content {
    Waiting(Option<Waker>),
    Filled(Filled),
    /// Nothing came in time, and nothing is taken any more.
    Overdue,
}

/// A value in a slot.
pub(super) struct Filled {
    storage: Storage,
    /// Drops the value, or the box it is in.
    ///
    /// Invariant: the function made for the type the storage was filled with.
    drop_in_place: unsafe fn(*mut Storage),
    taken: Cell<bool>,
}

impl Drop for Filled {
    fn drop(&mut self) {
        if !self.taken.get() {
            // SAFETY: by the field's invariant, and the value was not taken.
            unsafe { (self.drop_in_place)(&raw mut self.storage) };
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

impl Replies {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NO_SLOT,
            open: 0,
            next_look: 0,
        }
    }

    /// How many askers wait or have an answer to fetch.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    #[inline]
    pub(super) fn insert(&mut self, generation: u64, due: u32) -> u32 {
        self.open += 1;
        if self.free != NO_SLOT {
            let slot = self.free;
            let entry = &mut self.entries[slot as usize];
            self.free = entry.next_free;
            entry.generation = generation;
            entry.due = due;
            return slot;
        }
        self.entries.push(Entry {
            generation,
            content: Content::Waiting(None),
            next_free: NO_SLOT,
            due,
        });
        u32::try_from(self.entries.len() - 1)
            .ok()
            .filter(|&slot| slot < ON_THE_STACK)
            .expect("fewer slots than bytes of memory")
    }

    #[inline]
    fn entry(&mut self, place: Place) -> Option<&mut Entry> {
        self.entries
            .get_mut(place.slot as usize)
            .filter(|entry| entry.generation == place.generation)
    }

    pub(super) fn is_open(&self, place: Place) -> bool {
        self.entries
            .get(place.slot as usize)
            .is_some_and(|entry| entry.generation == place.generation)
    }

    /// Whether a slot that is due then has to be looked at before the next look.
    #[inline]
    pub(super) fn is_due_sooner(&self, due: u32) -> bool {
        due != 0 && (self.next_look == 0 || is_before(due, self.next_look))
    }

    pub(super) fn set_next_look(&mut self, tick: u32) {
        self.next_look = tick;
    }

    pub(super) fn slot_count(&self) -> usize {
        self.entries.len()
    }

    /// Marks what is overdue at this tick, and collects whom to wake. Returns the first tick at which something else
    /// will be; zero if nothing is watched.
    pub(super) fn mark_overdue(&mut self, now: u32, wakers: &mut Vec<Waker>) -> u32 {
        let mut next = 0;
        for entry in &mut self.entries {
            let Content::Waiting(waker) = &mut entry.content else {
                continue;
            };
            if entry.generation == 0 || entry.due == 0 {
                continue;
            }
            if is_before(now, entry.due) {
                if next == 0 || is_before(entry.due, next) {
                    next = entry.due;
                }
            } else {
                wakers.extend(waker.take());
                entry.content = Content::Overdue;
            }
        }
        next
    }

    pub(super) fn is_filled(&self, place: Place) -> bool {
        self.entries.get(place.slot as usize).is_some_and(|entry| {
            entry.generation == place.generation && matches!(entry.content, Content::Filled(_))
        })
    }

    /// Stores the value unless its asker is gone, in which case it stays with the caller. Returns whom to wake.
    ///
    /// # Safety
    /// * `place` was opened for `T`.
    #[inline]
    pub(super) unsafe fn fill<T: 'static>(
        &mut self,
        place: Place,
        value: &mut Option<T>,
    ) -> Option<Waker> {
        let entry = self.entry(place)?;
        let Content::Waiting(waker) = &mut entry.content else {
            return None;
        };
        let waker = waker.take();
        if let Some(value) = value.take() {
            entry.content = Content::Filled(store(value));
        }
        waker
    }

    /// # Safety
    /// * `place` was opened for `T`.
    #[inline]
    pub(super) unsafe fn poll<T: 'static>(
        &mut self,
        place: Place,
        waker: &Waker,
    ) -> Poll<Result<T, Unanswered>> {
        let Some(entry) = self.entry(place) else {
            return Poll::Ready(Err(Unanswered::Gone));
        };
        match &mut entry.content {
            Content::Overdue => {
                // Nothing of the user's is in it.
                drop(self.remove(place));
                Poll::Ready(Err(Unanswered::Overdue))
            }
            Content::Waiting(Some(known)) if known.will_wake(waker) => Poll::Pending,
            Content::Waiting(known) => {
                *known = Some(waker.clone());
                Poll::Pending
            }
            Content::Filled(filled) => {
                // SAFETY: by our contract the slot was opened, and so filled, for `T`.
                let value = unsafe { load::<T>(filled) };
                // Nothing of the user's is dropped: the value is out and a waker was taken at the fill.
                drop(self.remove(place));
                Poll::Ready(Ok(value))
            }
        }
    }

    /// Frees the entry; what was in it is for the caller to drop, outside the borrow.
    #[inline]
    pub(super) fn remove(&mut self, place: Place) -> Option<Content> {
        let free = self.free;
        let entry = self.entry(place)?;
        entry.generation = 0;
        entry.next_free = free;
        let content = std::mem::replace(&mut entry.content, Content::Waiting(None));
        self.free = place.slot;
        self.open -= 1;
        Some(content)
    }
}

#[inline]
fn store<T>(value: T) -> Filled {
    let mut storage: Storage = [MaybeUninit::uninit(); INLINE_WORDS];
    let target = (&raw mut storage).cast::<T>();
    if const { is_inline::<T>() } {
        // SAFETY: `is_inline` says that a `T` fits and is aligned.
        unsafe { target.write(value) };
        Filled {
            storage,
            drop_in_place: drop_inline::<T>,
            taken: Cell::new(false),
        }
    } else {
        let boxed = Box::into_raw(Box::new(value));
        // SAFETY: a pointer fits and is aligned.
        unsafe { target.cast::<*mut T>().write(boxed) };
        Filled {
            storage,
            drop_in_place: drop_boxed::<T>,
            taken: Cell::new(false),
        }
    }
}

/// # Safety
/// * The storage was filled with a `T` that was not taken yet.
#[inline]
unsafe fn load<T>(filled: &mut Filled) -> T {
    filled.taken.set(true);
    let source = (&raw mut filled.storage).cast::<T>();
    if const { is_inline::<T>() } {
        // SAFETY: by our contract; `taken` makes this the one move.
        unsafe { source.read() }
    } else {
        // SAFETY: by our contract the storage holds the pointer that `store` wrote.
        let pointer = unsafe { source.cast::<*mut T>().read() };
        // SAFETY: it came from `Box::into_raw`; `taken` makes this the one move.
        *unsafe { Box::from_raw(pointer) }
    }
}

/// # Safety
/// * The storage holds a `T`, which is not used again.
unsafe fn drop_inline<T>(storage: *mut Storage) {
    // SAFETY: by our contract.
    unsafe { ptr::drop_in_place(storage.cast::<T>()) };
}

/// # Safety
/// * The storage holds a `*mut T` from `Box::into_raw`, which is not used again.
unsafe fn drop_boxed<T>(storage: *mut Storage) {
    // SAFETY: by our contract.
    let pointer = unsafe { storage.cast::<*mut T>().read() };
    // SAFETY: by our contract.
    drop(unsafe { Box::from_raw(pointer) });
}
