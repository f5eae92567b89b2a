//! The handle of one operation of many completions.

use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::future::{no_shard, with_driver};
use super::inflight::{Key, Polled};
use super::op::{Operation, Outcome};
use super::pool::BufferPool;

/// An operation that goes on until it is cancelled or ends by itself.
///
/// It belongs to a listener or stream, not to the future of one accept or receive: dropping such a future leaves the
/// operation as it is, and what it brings goes to the next one. Dropping this cancels it.
pub(crate) struct MultiOp<T: Operation> {
    /// `None` once it has ended.
    key: Option<Key<T>>,
}

impl<T: Operation> MultiOp<T> {
    /// Starts an operation on the current shard.
    ///
    /// # Errors
    ///
    /// If the calling thread is no shard.
    pub(crate) fn start(operation: T) -> io::Result<MultiOp<T>> {
        let key = with_driver(|driver| driver.borrow_mut().start_multi(operation));
        key.map(|key| MultiOp { key: Some(key) })
            .ok_or_else(no_shard)
    }

    /// Waits for the first completion, and tells what it said.
    pub(crate) fn poll_first(&mut self, cx: &Context<'_>) -> Poll<Outcome> {
        let waker = cx.waker().clone();
        let key = self.key.as_ref().expect("an operation ends once");
        let watched = with_driver(|driver| {
            let mut driver = driver.borrow_mut();
            match driver.first_outcome(key) {
                Some(outcome) => Err(outcome),
                None => Ok(driver.watch(key, waker)),
            }
        });
        match watched.expect("an operation was polled outside of the shard that started it") {
            Ok(_replaced) => Poll::Pending,
            Err(outcome) => Poll::Ready(outcome),
        }
    }

    /// Waits for the next completion. `Ready` once it has ended, `Pending` while it goes on.
    ///
    /// Tells nothing about completions that came before: what they brought has to be looked at first.
    ///
    /// # Panics
    ///
    /// If it has ended before, or on another thread than the shard's.
    pub(crate) fn poll_end(&mut self, cx: &Context<'_>) -> Poll<T::Output> {
        // Cloned before the driver is borrowed, as the replaced one is dropped after that: a waker may be anyone's code.
        let waker = cx.waker().clone();
        let key = self.key.take().expect("an operation ends once");
        let watched = with_driver(|driver| driver.borrow_mut().watch(&key, waker))
            .expect("an operation was polled outside of the shard that started it");
        if let Ok(replaced) = watched {
            self.key = Some(key);
            drop(replaced);
            return Poll::Pending;
        }
        match with_driver(|driver| driver.borrow_mut().poll(key, Waker::noop())) {
            Some(Polled::Ready(operation, outcome)) => Poll::Ready(operation.complete(Ok(outcome))),
            _ => unreachable!("an operation that cannot be watched has ended"),
        }
    }
}

impl<T: Operation> Drop for MultiOp<T> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            // Without a current shard the record is left to its driver, which disposes of it or leaks it.
            let garbage = with_driver(|driver| driver.borrow_mut().drop_handle(key));
            drop(garbage);
        }
    }
}

impl<T: Operation> fmt::Debug for MultiOp<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiOp")
            .field("name", &T::NAME)
            .field("has_ended", &self.key.is_none())
            .finish()
    }
}

/// The receive buffers of the current shard. `None` where they cannot be had.
///
/// # Errors
///
/// If the calling thread is no shard.
pub(crate) fn current_pool() -> io::Result<Option<Rc<BufferPool>>> {
    with_driver(|driver| driver.borrow_mut().pool().cloned()).ok_or_else(no_shard)
}

/// Whether the current shard can send without copying.
pub(crate) fn has_zero_copy() -> bool {
    with_driver(|driver| driver.borrow().has_zero_copy()).unwrap_or(false)
}
