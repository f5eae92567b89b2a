//! Payloads whose type is forgotten: how they lie in a record, and how they end.
//!
//! Small payloads lie in the record itself, larger ones in a box of their own.
#![expect(unsafe_code, reason = "stores and restores values of erased type")]

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::Waker;

use super::backend::EntryKind;
use super::op::{Effects, Operation, Outcome, Pace};

/// Payloads up to this size, and up to the alignment of [`Storage`], need no box.
const INLINE_SIZE: usize = 128;

/// Room for a payload, or for the pointer to its box.
#[repr(C, align(16))]
pub(super) struct Storage([u8; INLINE_SIZE]);

/// The operations on a payload whose type is forgotten.
pub(super) struct Vtable {
    pub(super) name: &'static str,
    pub(super) entry: unsafe fn(NonNull<Storage>) -> EntryKind,
    orphan: unsafe fn(NonNull<Storage>, Outcome),
    drop: unsafe fn(NonNull<Storage>),
    pub(super) can_hide: bool,
    /// For operations of many completions; touches the payload while the kernel has its entry.
    pub(super) progress: Option<ErasedProgress>,
}

type ErasedProgress = unsafe fn(NonNull<Storage>, Outcome, &mut Effects) -> Pace;

impl Vtable {
    /// Of a slot that was never used.
    pub(super) const EMPTY: Vtable = Vtable {
        name: "none",
        entry: |_| EntryKind::Nop,
        orphan: |_, _| {},
        drop: |_| {},
        can_hide: false,
        progress: None,
    };
}

/// How a payload of type `T` lies in its storage: itself if it fits, else as the address of its box.
pub(super) struct Erased<T>(PhantomData<T>);

impl<T: Operation> Erased<T> {
    const FITS: bool =
        size_of::<T>() <= size_of::<Storage>() && align_of::<T>() <= align_of::<Storage>();

    pub(super) const VTABLE: &'static Vtable = &Vtable {
        name: T::NAME,
        entry: Self::entry,
        orphan: Self::orphan,
        drop: Self::drop,
        can_hide: T::CAN_HIDE,
        progress: match T::PROGRESS {
            Some(_) => Some(Self::progress),
            None => None,
        },
    };

    /// # Safety
    ///
    /// `storage` is valid for writes and holds nothing.
    pub(super) unsafe fn write(storage: NonNull<Storage>, operation: T) {
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
    pub(super) unsafe fn read(storage: NonNull<Storage>) -> T {
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
        // SAFETY: by this function's contract.
        let mut operation = unsafe { Self::locate(storage) };
        // SAFETY: a valid `T` that nothing else borrows, by the contract.
        unsafe { operation.as_mut() }.entry()
    }

    /// # Safety
    ///
    /// As for [`entry`](Self::entry).
    unsafe fn progress(storage: NonNull<Storage>, outcome: Outcome, effects: &mut Effects) -> Pace {
        let progress = T::PROGRESS.expect("in the table of operations that have it");
        // SAFETY: by this function's contract.
        let mut operation = unsafe { Self::locate(storage) };
        // SAFETY: a valid `T` that nothing else borrows, by the contract. The kernel has no address inside of it, which
        // an operation with `PROGRESS` promises.
        progress(unsafe { operation.as_mut() }, outcome, effects)
    }

    /// # Safety
    ///
    /// `storage` holds what [`write`](Self::write) put there.
    unsafe fn locate(storage: NonNull<Storage>) -> NonNull<T> {
        if Self::FITS {
            storage.cast::<T>()
        } else {
            // SAFETY: `write` put the address of a box there, which is not null.
            unsafe { NonNull::new_unchecked(storage.cast::<*mut T>().read()) }
        }
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

/// What an ended handle or operation left behind. Dropping it runs destructors and orphan hooks: code of users.
#[derive(Debug, Default)]
#[must_use = "dropped while the driver is borrowed, the destructors in here cannot use it"]
pub(crate) struct Garbage {
    #[expect(dead_code, reason = "held for its destructor")]
    pub(super) payload: Option<Payload>,
    #[expect(dead_code, reason = "held for its destructor")]
    pub(super) waker: Option<Waker>,
    #[expect(dead_code, reason = "held for its destructor")]
    pub(super) released: Option<Rc<dyn Any>>,
}

impl Garbage {
    pub(super) fn new(payload: Option<Payload>, waker: Option<Waker>) -> Garbage {
        Garbage {
            payload,
            waker,
            released: None,
        }
    }
}

/// A payload that was moved out of its record.
pub(super) struct Payload {
    /// Invariant: holds the payload of the type that `vtable` is for.
    storage: MaybeUninit<Storage>,
    vtable: &'static Vtable,
    /// The outcome, unless the operation never reached the kernel.
    outcome: Option<Outcome>,
    /// `!Send`: payloads hold things that stay on their shard.
    home: PhantomData<*const ()>,
}

impl Payload {
    /// Takes over the payload in `storage`.
    ///
    /// # Safety
    ///
    /// * `storage` holds a payload of the type that `vtable` is for, and the kernel is done with it.
    /// * It is not looked at again.
    pub(super) unsafe fn take(
        storage: NonNull<Storage>,
        vtable: &'static Vtable,
        outcome: Option<Outcome>,
    ) -> Payload {
        Payload {
            // SAFETY: valid by the contract, which also makes this the only copy.
            storage: unsafe { storage.cast::<MaybeUninit<Storage>>().read() },
            vtable,
            outcome,
            home: PhantomData,
        }
    }
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
