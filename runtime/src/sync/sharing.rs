//! Who may hold the ends of a primitive: the tasks of one shard, or any thread.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

mod sealed {
    #[expect(unnameable_types, reason = "nobody else is to implement it")]
    pub trait Sealed {}
    impl Sealed for super::SameShard {}
    impl Sealed for super::AnyThread {}
}

/// How the holders of a primitive share its state. There are [`SameShard`] and [`AnyThread`].
pub trait Sharing: sealed::Sealed + Copy + fmt::Debug + 'static {
    /// A counted pointer to a state that several holders change.
    type Shared<S>: Clone;
    /// A counted pointer to a value that several holders read.
    type Pointer<T>: Clone + Deref<Target = T>;

    /// Puts a state where its holders reach it.
    #[doc(hidden)]
    fn share<S>(state: S) -> Self::Shared<S>;

    /// Changes the state. Nobody else gets at it meanwhile, so `change` must not run code of users: it moves values and
    /// wakers in and out, and its caller drops and wakes them afterwards.
    #[doc(hidden)]
    fn with<S, R>(shared: &Self::Shared<S>, change: impl FnOnce(&mut S) -> R) -> R;

    /// Puts a value where its readers reach it.
    #[doc(hidden)]
    fn point<T>(value: T) -> Self::Pointer<T>;

    /// The value: itself if no other reader has it, and else a clone.
    #[doc(hidden)]
    fn unwrap_or_clone<T: Clone>(pointer: Self::Pointer<T>) -> T;
}

/// All holders are tasks of one shard. Costs no atomic operation and no lock; the holders are not `Send`.
#[derive(Clone, Copy, Debug)]
pub enum SameShard {}

impl Sharing for SameShard {
    type Shared<S> = Rc<RefCell<S>>;
    type Pointer<T> = Rc<T>;

    fn share<S>(state: S) -> Self::Shared<S> {
        Rc::new(RefCell::new(state))
    }

    #[inline]
    fn with<S, R>(shared: &Self::Shared<S>, change: impl FnOnce(&mut S) -> R) -> R {
        change(&mut shared.borrow_mut())
    }

    fn point<T>(value: T) -> Self::Pointer<T> {
        Rc::new(value)
    }

    fn unwrap_or_clone<T: Clone>(pointer: Self::Pointer<T>) -> T {
        Rc::unwrap_or_clone(pointer)
    }
}

/// The holders may be on any threads, shards or not. Changes of the state take a lock for some instructions.
#[derive(Clone, Copy, Debug)]
pub enum AnyThread {}

impl Sharing for AnyThread {
    type Shared<S> = Arc<Mutex<S>>;
    type Pointer<T> = Arc<T>;

    fn share<S>(state: S) -> Self::Shared<S> {
        Arc::new(Mutex::new(state))
    }

    #[inline]
    fn with<S, R>(shared: &Self::Shared<S>, change: impl FnOnce(&mut S) -> R) -> R {
        // Held for the change alone, in which nothing blocks, wakes or is dropped.
        change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn point<T>(value: T) -> Self::Pointer<T> {
        Arc::new(value)
    }

    fn unwrap_or_clone<T: Clone>(pointer: Self::Pointer<T>) -> T {
        Arc::unwrap_or_clone(pointer)
    }
}
