//! A value that one task changes and others look at.

use std::fmt;
use std::mem;

use super::super::sharing::Sharing;
use super::super::waiters::{Waiters, until, wake_all};

struct State<T, K: Sharing> {
    value: K::Pointer<T>,
    /// Counts the changes.
    version: u64,
    has_sender: bool,
    receivers: usize,
    /// Who waits for a change.
    changed: Waiters<()>,
    /// Who waits for the last receiver to go.
    unwatched: Waiters<()>,
}

/// Opens a channel that holds one value, always the newest.
pub fn channel<T, K: Sharing>(value: T) -> (Sender<T, K>, Receiver<T, K>) {
    let shared = K::share(State {
        value: K::point(value),
        version: 0,
        has_sender: true,
        receivers: 1,
        changed: Waiters::new(),
        unwatched: Waiters::new(),
    });
    (
        Sender {
            shared: shared.clone(),
        },
        Receiver { shared, seen: 0 },
    )
}

/// The end that changes the value. There is one of it.
pub struct Sender<T, K: Sharing> {
    shared: K::Shared<State<T, K>>,
}

impl<T, K: Sharing> Sender<T, K> {
    /// Replaces the value and tells all receivers.
    ///
    /// # Errors
    /// [`SendError`] gives the value back, and the old one stays, when there is no receiver.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        drop(self.send_replace(value));
        Ok(())
    }

    /// Replaces the value, also when there is no receiver, and returns the old one.
    pub fn send_replace(&self, value: T) -> K::Pointer<T> {
        let value = K::point(value);
        let old = K::with(&self.shared, |state| {
            state.version += 1;
            state.changed.grant_all(());
            mem::replace(&mut state.value, value)
        });
        wake_all::<K, _>(&self.shared, |state| state.changed.next_waker());
        old
    }

    /// Changes a copy of the value, and sends that.
    pub fn send_modify(&mut self, modify: impl FnOnce(&mut T))
    where
        T: Clone,
    {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes a copy of the value, and sends that if `modify` says so; returns what it said.
    pub fn send_if_modified(&mut self, modify: impl FnOnce(&mut T) -> bool) -> bool
    where
        T: Clone,
    {
        // No other sender can change the value meanwhile: there is one, and it is borrowed exclusively.
        let mut value = T::clone(&self.borrow());
        let modified = modify(&mut value);
        if modified {
            drop(self.send_replace(value));
        }
        modified
    }

    /// The value as it is now. It keeps, whatever is sent while it is held.
    #[must_use]
    pub fn borrow(&self) -> K::Pointer<T> {
        K::with(&self.shared, |state| state.value.clone())
    }

    /// A new receiver, which has seen the present value.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T, K> {
        let seen = K::with(&self.shared, |state| {
            state.receivers += 1;
            state.version
        });
        Receiver {
            shared: self.shared.clone(),
            seen,
        }
    }

    /// Waits until there is no receiver.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn closed(&self) {
        let is_unwatched = |state: &mut State<T, K>| (state.receivers == 0).then_some(());
        until::<K, _, _>(&self.shared, |state| &mut state.unwatched, is_unwatched).await;
    }

    /// Whether there is no receiver.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// How many receivers there are.
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        K::with(&self.shared, |state| state.receivers)
    }
}

impl<T, K: Sharing> Drop for Sender<T, K> {
    fn drop(&mut self) {
        K::with(&self.shared, |state| {
            state.has_sender = false;
            state.changed.grant_all(());
        });
        wake_all::<K, _>(&self.shared, |state| state.changed.next_waker());
    }
}

/// An end that looks at the value. A clone has seen what its original has.
pub struct Receiver<T, K: Sharing> {
    shared: K::Shared<State<T, K>>,
    seen: u64,
}

impl<T, K: Sharing> Receiver<T, K> {
    /// The value as it is now, without counting it as seen. It keeps, whatever is sent while it is held.
    #[must_use]
    pub fn borrow(&self) -> K::Pointer<T> {
        K::with(&self.shared, |state| state.value.clone())
    }

    /// The value as it is now, which counts as seen.
    pub fn borrow_and_update(&mut self) -> K::Pointer<T> {
        K::with(&self.shared, |state| {
            self.seen = state.version;
            state.value.clone()
        })
    }

    /// Waits for a value that was not seen yet, and counts it as seen. Of several changes only the last is to be had.
    ///
    /// # Errors
    /// [`RecvError`] when the sender is gone and its last value was seen.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn changed(&mut self) -> Result<(), RecvError> {
        let seen = self.seen;
        let next = move |state: &mut State<T, K>| {
            if state.version != seen {
                return Some(Ok(state.version));
            }
            (!state.has_sender).then_some(Err(RecvError))
        };
        self.seen = until::<K, _, _>(&self.shared, |state| &mut state.changed, next).await?;
        Ok(())
    }

    /// Waits for a value that fits, beginning with the present one, and counts it as seen.
    ///
    /// Values that are replaced before this task runs are not looked at.
    ///
    /// # Errors
    /// [`RecvError`] when the sender is gone and its last value does not fit.
    ///
    /// # Cancel safety
    /// Dropping the future may have counted values as seen that did not fit.
    pub async fn wait_for(
        &mut self,
        mut fits: impl FnMut(&T) -> bool,
    ) -> Result<K::Pointer<T>, RecvError> {
        loop {
            let value = self.borrow_and_update();
            if fits(&value) {
                return Ok(value);
            }
            drop(value);
            self.changed().await?;
        }
    }

    /// Whether there is a value that was not seen yet.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        K::with(&self.shared, |state| state.version != self.seen)
    }

    /// Whether the sender is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        K::with(&self.shared, |state| !state.has_sender)
    }
}

impl<T, K: Sharing> Clone for Receiver<T, K> {
    fn clone(&self) -> Self {
        K::with(&self.shared, |state| state.receivers += 1);
        Self {
            shared: self.shared.clone(),
            seen: self.seen,
        }
    }
}

impl<T, K: Sharing> Drop for Receiver<T, K> {
    fn drop(&mut self) {
        K::with(&self.shared, |state| {
            state.receivers -= 1;
            if state.receivers == 0 {
                state.unwatched.grant_all(());
            }
        });
        wake_all::<K, _>(&self.shared, |state| state.unwatched.next_waker());
    }
}

impl<T, K: Sharing> fmt::Debug for Sender<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("receiver_count", &self.receiver_count())
            .finish_non_exhaustive()
    }
}

impl<T, K: Sharing> fmt::Debug for Receiver<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("has_changed", &self.has_changed())
            .finish_non_exhaustive()
    }
}

/// There is no receiver; gives the value back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody watches the value")
    }
}

impl<T> std::error::Error for SendError<T> {}

/// The sender is gone, and its last value was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sender of the watched value is gone")
    }
}

impl std::error::Error for RecvError {}
