//! Telling a task that something has happened.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::super::sharing::Sharing;
use super::super::waiters::{Key, Waiters, poll_step, wake, wake_all};

/// Tells waiting tasks that something has happened.
///
/// It keeps at most one permit: [`Notify::notify_one`] wakes the task that waits longest or, if none does, lets the next
/// one that comes pass at once. [`Notify::notify_waiters`] wakes all who wait now, and keeps nothing.
///
/// A handle: clone it into each task that uses it.
///
/// # Examples
/// ```
/// use greenroom_runtime::{spawn, sync::Notify};
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let changed = Notify::new();
///     let waits = changed.clone();
///     let task = spawn(async move { waits.notified().await });
///     changed.notify_one();
///     task.await.unwrap();
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub struct Notify<K: Sharing> {
    shared: K::Shared<State>,
}

struct State {
    /// A notification that nobody was there for.
    permit: bool,
    /// Calls of `notify_waiters`.
    rounds: u64,
    waiters: Waiters<Given>,
}

/// What a waiter was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Nothing,
    /// The one notification that is to reach somebody.
    One,
    /// One that went to everybody.
    All,
}

impl State {
    fn notify_one(&mut self) {
        if !self.waiters.grant_first(Given::One) {
            self.permit = true;
        }
    }
}

impl<K: Sharing> Notify<K> {
    /// A notification that nobody waits for and that has no permit.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shared: K::share(State {
                permit: false,
                rounds: 0,
                waiters: Waiters::new(),
            }),
        }
    }

    /// Waits for a notification.
    ///
    /// # Cancel safety
    /// A notification from [`Notify::notify_one`] that reached a future which is then dropped goes on to the next one
    /// that waits, or is kept. The place in the line is lost.
    #[must_use = "a future does nothing until it is awaited"]
    pub fn notified(&self) -> Notified<K> {
        Notified {
            round: K::with(&self.shared, |state| state.rounds),
            shared: self.shared.clone(),
            key: None,
        }
    }

    /// Wakes the task that waits longest; if none does, the next one to wait passes at once.
    pub fn notify_one(&self) {
        let waker = K::with(&self.shared, |state| {
            state.notify_one();
            state.waiters.next_waker()
        });
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    /// Wakes all who wait: every [`Notified`] made before this call, whether it was polled or not.
    pub fn notify_waiters(&self) {
        K::with(&self.shared, |state| {
            state.rounds += 1;
            state.waiters.grant_all(Given::All);
        });
        wake_all::<K, _>(&self.shared, |state| state.waiters.next_waker());
    }
}

impl<K: Sharing> Default for Notify<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Sharing> Clone for Notify<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

/// The future of [`Notify::notified`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Notified<K: Sharing> {
    shared: K::Shared<State>,
    /// The count of rounds when this was made.
    round: u64,
    key: Option<Key>,
}

impl<K: Sharing> Notified<K> {
    fn step(&mut self, waker: &mut Option<Waker>) -> Poll<()> {
        K::with(&self.shared, |state| {
            let given = match self.key {
                None if state.rounds != self.round => Given::All,
                None if state.permit => {
                    state.permit = false;
                    Given::One
                }
                None => Given::Nothing,
                Some(key) => state.waiters.state(key),
            };
            if given == Given::Nothing {
                state.waiters.wait(&mut self.key, given, waker);
                return Poll::Pending;
            }
            if let Some(key) = self.key.take() {
                (_, *waker) = state.waiters.leave(key);
            }
            Poll::Ready(())
        })
    }
}

impl<K: Sharing> Unpin for Notified<K> {}

impl<K: Sharing> Future for Notified<K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        poll_step(cx, |waker| self.step(waker))
    }
}

impl<K: Sharing> Drop for Notified<K> {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let (own, next) = K::with(&self.shared, |state| {
            let (given, own) = state.waiters.leave(key);
            if given == Given::One {
                state.notify_one();
            }
            (own, state.waiters.next_waker())
        });
        if let Some(next) = next {
            wake(next);
        }
        drop(own);
    }
}

impl<K: Sharing> fmt::Debug for Notify<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permit = K::with(&self.shared, |state| state.permit);
        f.debug_struct("Notify").field("permit", &permit).finish()
    }
}

impl<K: Sharing> fmt::Debug for Notified<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified").finish_non_exhaustive()
    }
}
