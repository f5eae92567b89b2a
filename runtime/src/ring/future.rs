//! The future of one operation.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::driver::Driver;
use super::inflight::{Key, Polled};
use super::op::Operation;
use crate::shard::{Shard, context};

/// Waits for one operation of the current shard.
///
/// The operation starts with the first poll. The future holds a key to its record and nothing the kernel knows of:
/// dropping it cancels the operation, forgetting it leaks the record, and neither frees memory in use.
#[must_use = "an operation does nothing unless awaited"]
pub(crate) struct Op<T: Operation> {
    state: State<T>,
}

enum State<T> {
    Unstarted(T),
    Started(Key<T>),
    Finished,
}

impl<T: Operation> Op<T> {
    pub(crate) fn new(operation: T) -> Op<T> {
        Op {
            state: State::Unstarted(operation),
        }
    }

    /// Lets the operation run to its end, starting it if need be, although nobody will see how it ends.
    ///
    /// Without a current shard it is dropped: its payload if it had not started, else as a dropped future.
    pub(crate) fn detach(mut self) {
        let garbage = match mem::replace(&mut self.state, State::Finished) {
            State::Unstarted(operation) => {
                let cx = Context::from_waker(Waker::noop());
                let key = start(operation, &cx).ok();
                key.and_then(|key| with_driver(|driver| driver.borrow_mut().detach(key)))
            }
            State::Started(key) => with_driver(|driver| driver.borrow_mut().detach(key)),
            State::Finished => None,
        };
        drop(garbage);
    }
}

// Nothing in here is pinned: a payload on its way to the driver has promised no address yet.
impl<T: Operation> Unpin for Op<T> {}

impl<T: Operation> Future for Op<T> {
    type Output = T::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        match mem::replace(&mut self.state, State::Finished) {
            State::Unstarted(operation) => match start(operation, cx) {
                Ok(key) => {
                    self.state = State::Started(key);
                    Poll::Pending
                }
                Err(operation) => Poll::Ready(operation.complete(Err(no_shard()))),
            },
            State::Started(key) => {
                let polled = context::with(|shard| poll(shard, key, cx));
                match polled.expect("an operation was polled outside of the shard that started it")
                {
                    Polled::Ready(operation, outcome) => {
                        return Poll::Ready(operation.complete(Ok(outcome)));
                    }
                    Polled::Waiting(key) => self.state = State::Started(key),
                    Polled::NewWaker(key) => {
                        renew_waker(&key, cx);
                        self.state = State::Started(key);
                    }
                }
                Poll::Pending
            }
            State::Finished => panic!("an operation was polled after it had ended"),
        }
    }
}

impl<T: Operation> Drop for Op<T> {
    fn drop(&mut self) {
        if let State::Started(key) = mem::replace(&mut self.state, State::Finished) {
            // Without a current shard the record is left to its driver, which disposes of it or leaks it.
            let garbage = with_driver(|driver| driver.borrow_mut().drop_handle(key));
            drop(garbage);
        }
    }
}

impl<T: Operation> fmt::Debug for Op<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Unstarted(_) => "unstarted",
            State::Started(_) => "started",
            State::Finished => "finished",
        };
        f.debug_struct("Op")
            .field("name", &T::NAME)
            .field("state", &state)
            .finish()
    }
}

/// Whether an operation has to be asked for again: a signal came in between, before anything happened.
pub(crate) fn is_interrupted<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::Interrupted)
}

pub(super) fn with_driver<R>(f: impl FnOnce(&RefCell<Driver>) -> R) -> Option<R> {
    context::with_driver(f)
}

/// Starts the operation on the current shard, or hands it back if there is none.
fn start<T: Operation>(operation: T, cx: &Context<'_>) -> Result<Key<T>, T> {
    // Cloned before the driver is borrowed: a waker may be anyone's code.
    let waker = cx.waker().clone();
    let mut unstarted = Some(operation);
    let key = with_driver(|driver| {
        let operation = unstarted.take().expect("taken once");
        driver.borrow_mut().start(operation, waker)
    });
    key.ok_or_else(|| unstarted.expect("not taken without a shard"))
}

/// Takes the result if it is there and the task's budget allows.
#[inline]
fn poll<T: Operation>(shard: &Shard, key: Key<T>, cx: &Context<'_>) -> Polled<T> {
    let budget = shard.budget();
    if budget.is_spent() {
        shard.give_way(cx.waker());
        return Polled::Waiting(key);
    }
    let polled = shard.driver().borrow_mut().poll(key, cx.waker());
    if matches!(polled, Polled::Ready(..)) {
        budget.spend();
    }
    polled
}

/// Tells the driver to wake the task that polls now. Clones and drops wakers while the driver is free.
#[cold]
fn renew_waker<T: Operation>(key: &Key<T>, cx: &Context<'_>) {
    let waker = cx.waker().clone();
    let replaced = with_driver(|driver| driver.borrow_mut().set_waker(key, waker));
    drop(replaced);
}

/// The error of an operation that has no shard to run on.
pub(super) fn no_shard() -> io::Error {
    context::no_shard("sockets and files belong to the shard that opened them")
}
