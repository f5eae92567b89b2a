//! The current shard: a scoped thread-local.
//!
//! The pointer is set for the time a shard's code runs and put back afterwards, so one thread can drive several shards
//! in turn.

#![expect(unsafe_code, reason = "reads the scoped pointer to the current shard")]

use std::cell::{Cell, RefCell};
use std::io;
use std::marker::PhantomData;
use std::ptr;

use super::Shard;
use crate::ring::Driver;

thread_local! {
    /// Invariant: null, or a pointer to the shard of the innermost [`Entered`] on this thread's stack.
    static CURRENT: Cell<*const Shard> = const { Cell::new(ptr::null()) };
}

/// While this lives, its shard is the current one of the thread.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    previous: *const Shard,
    shard: PhantomData<&'a Shard>,
}

pub(crate) fn enter(shard: &Shard) -> Entered<'_> {
    Entered {
        previous: CURRENT.replace(shard),
        shard: PhantomData,
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        CURRENT.set(self.previous);
    }
}

/// Calls `f` with the current shard; `None` on a thread that runs none.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Shard) -> R) -> Option<R> {
    let current = CURRENT.get();
    if current.is_null() {
        return None;
    }
    // SAFETY: by the invariant of `CURRENT` the pointer comes from a live `Entered`, which borrows the shard.
    let shard = unsafe { &*current };
    Some(f(shard))
}

/// The error of I/O on a thread that runs no shard; `why` says what needs one.
#[cold]
pub(crate) fn no_shard(why: &str) -> io::Error {
    io::Error::other(format!(
        "no shard on this thread: {why}; run this on a shard, with `run_on` or `spawn_on`"
    ))
}

/// Calls `f` with the current shard's I/O driver.
pub(crate) fn with_driver<R>(f: impl FnOnce(&RefCell<Driver>) -> R) -> Option<R> {
    with(|shard| f(shard.driver()))
}
