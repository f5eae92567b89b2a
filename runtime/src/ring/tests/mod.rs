//! Operations that only tests start, and what the tests of the driver share.

mod life;
mod random;
mod real;
pub(super) mod records;
mod refused;
mod repeated;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::driver::Driver;
use super::inflight::{Key, Polled};
use super::op::{Operation, Outcome};

/// Counts how often it is woken.
#[derive(Debug, Default)]
pub(super) struct WakeCounter(AtomicUsize);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        // ORDERING: Relaxed; a counter on one thread.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl WakeCounter {
    pub(super) fn new() -> (Arc<WakeCounter>, Waker) {
        let counter = Arc::new(WakeCounter::default());
        (Arc::clone(&counter), Waker::from(counter))
    }

    pub(super) fn count(&self) -> usize {
        // ORDERING: Relaxed; a counter on one thread.
        self.0.load(Ordering::Relaxed)
    }
}

/// What became of the operations of one test: each success of the kernel is delivered or orphaned, once.
#[derive(Debug, Default)]
struct Ledger {
    delivered: Cell<usize>,
    orphaned: Cell<usize>,
    dropped: Cell<usize>,
}

impl Ledger {
    fn add(counter: &Cell<usize>) {
        counter.set(counter.get() + 1);
    }
}

/// Takes the result, which must be there.
fn take<T: Operation>(driver: &mut Driver, key: Key<T>) -> (T, Outcome) {
    match driver.poll(key, Waker::noop()) {
        Polled::Ready(operation, outcome) => (operation, outcome),
        Polled::Waiting(_) | Polled::NewWaker(_) => panic!("the operation has not ended"),
    }
}

/// Polls an operation, which must not have ended.
fn expect_pending<T: Operation>(driver: &mut Driver, key: Key<T>) -> Key<T> {
    match driver.poll(key, Waker::noop()) {
        Polled::Ready(_, outcome) => panic!("the operation ended with {outcome:?}"),
        Polled::Waiting(key) | Polled::NewWaker(key) => key,
    }
}
