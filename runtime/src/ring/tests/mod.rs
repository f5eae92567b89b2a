//! Operations that only tests start, and what the tests of the driver share.

mod hidden;
mod life;
mod parity;
mod random;
mod real;
pub(super) mod records;
#[path = "../../../tests/support/refusals.rs"]
mod refusals;
mod refused;
mod repeated;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::RingConfig;
use super::backend::AnyBackend;
use super::driver::Driver;
use super::inflight::{Key, Polled};
use super::op::{Operation, Outcome};
use crate::blocking::pool::{Pool, PoolConfig};

/// The backends on the real kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Uring,
    Epoll,
}

impl Kind {
    fn driver(self, sq_entries: u32) -> Driver {
        let config = RingConfig {
            sq_entries,
            ..RingConfig::default()
        };
        let blocking = Arc::new(Pool::new(PoolConfig::default()));
        let backend = match self {
            Kind::Uring => AnyBackend::uring(&config),
            Kind::Epoll => AnyBackend::epoll(&config, &blocking),
        };
        Driver::new(backend.unwrap(), config.pool)
    }
}

/// Makes two tests of each function: one for each backend.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod uring {
            $(#[test] fn $name() { super::$name(super::Kind::Uring); })*
        }
        mod epoll {
            $(#[test] fn $name() { super::$name(super::Kind::Epoll); })*
        }
    };
}
use on_both;

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
