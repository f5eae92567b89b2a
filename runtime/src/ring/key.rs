//! The right to the record of one operation.

use std::any::type_name;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use super::op::{OpId, Outcome};

/// The right to one operation: exactly one key exists for each record whose handle is alive.
///
/// Not `Copy`, made by [`Inflight::start`](super::inflight::Inflight::start) only and spent by whoever ends the handle, so that the type of the payload
/// is known wherever it is taken out.
pub(crate) struct Key<T> {
    pub(super) driver: DriverId,
    pub(super) id: OpId,
    /// `!Send`: the record belongs to this thread's driver.
    pub(super) payload: PhantomData<*const T>,
}

/// Tells the drivers of one thread apart, so that a key that outlived its driver does not open a record of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DriverId(u64);

/// What [`Inflight::poll`](super::inflight::Inflight::poll) found.
#[derive(Debug)]
pub(crate) enum Polled<T> {
    /// The operation ended; here is its payload.
    Ready(T, Outcome),
    /// It runs, and the waker it knows wakes the same task as the one given.
    Waiting(Key<T>),
    /// It runs, and has to be told a new waker with [`Inflight::set_waker`](super::inflight::Inflight::set_waker).
    NewWaker(Key<T>),
}

impl DriverId {
    pub(super) fn next() -> DriverId {
        thread_local! {
            static NEXT: Cell<u64> = const { Cell::new(0) };
        }
        DriverId(NEXT.replace(NEXT.get() + 1))
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
