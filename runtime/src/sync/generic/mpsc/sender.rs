//! The ends that send.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::super::super::permits::Refusal;
use super::super::super::sharing::Sharing;
use super::super::super::waiters::{Key, poll_step, until, wake, wake_all};
use super::{SendError, State, TrySendError};

/// An end that sends. When the last one is dropped the receiver gets what is left, and then `None`.
pub struct Sender<T, K: Sharing> {
    shared: K::Shared<State<T>>,
}

impl<T, K: Sharing> Sender<T, K> {
    /// The state must count this sender already.
    pub(super) fn new(shared: K::Shared<State<T>>) -> Self {
        Self { shared }
    }

    /// Waits for room and sends the value.
    ///
    /// # Errors
    /// [`SendError`] gives the value back when the channel is closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready drops the value, which was not sent, and the place in the line. To keep the
    /// value, wait with [`Sender::reserve`].
    pub fn send(&self, value: T) -> Sending<'_, T, K> {
        Sending {
            sender: self,
            value: Some(value),
            key: None,
        }
    }

    /// Sends the value if there is room and nobody waits for it.
    ///
    /// # Errors
    /// [`TrySendError`] gives the value back.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let receiver = K::with(&self.shared, |state| match state.room.try_take(1) {
            Ok(()) => state.push(value).map_err(TrySendError::Closed),
            Err(Refusal::Short) => Err(TrySendError::Full(value)),
            Err(Refusal::Closed) => Err(TrySendError::Closed(value)),
        })?;
        if let Some(receiver) = receiver {
            wake(receiver);
        }
        Ok(())
    }

    /// Waits for room for one value, without having it yet.
    ///
    /// # Errors
    /// [`SendError`] when the channel is closed.
    ///
    /// # Cancel safety
    /// A place that was given to a future which is then dropped goes on to the next in line.
    #[must_use = "a future does nothing until it is awaited"]
    pub fn reserve(&self) -> Reserve<T, K> {
        Reserve {
            sender: self.clone(),
            key: None,
        }
    }

    /// Takes room for one value if there is some and nobody waits for it.
    ///
    /// # Errors
    /// [`TrySendError`] says why there is none.
    pub fn try_reserve(&self) -> Result<Permit<T, K>, TrySendError<()>> {
        match K::with(&self.shared, |state| state.room.try_take(1)) {
            Ok(()) => Ok(Permit::new(self.clone())),
            Err(Refusal::Short) => Err(TrySendError::Full(())),
            Err(Refusal::Closed) => Err(TrySendError::Closed(())),
        }
    }

    /// Waits until the channel is closed: the receiver closed it, or is gone.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn closed(&self) {
        let is_closed = |state: &mut State<T>| state.room.is_closed().then_some(());
        until::<K, _, _>(&self.shared, |state| &mut state.closed, is_closed).await;
    }

    /// Whether the receiver closed the channel, or is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        K::with(&self.shared, |state| state.room.is_closed())
    }

    /// For how many values there is room.
    #[must_use]
    pub fn capacity(&self) -> usize {
        K::with(&self.shared, |state| state.room.available())
    }

    /// For how many values there is room when the channel is empty.
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        K::with(&self.shared, |state| state.capacity)
    }

    /// A waiter that will not use its place is dropped.
    fn withdraw(&self, key: Key) {
        let (own, receiver) = K::with(&self.shared, |state| {
            let own = state.room.withdraw(key);
            (own, state.receiver_of_the_end())
        });
        wake_all::<K, _>(&self.shared, State::next_waker);
        if let Some(receiver) = receiver {
            wake(receiver);
        }
        drop(own);
    }
}

impl<T, K: Sharing> Clone for Sender<T, K> {
    fn clone(&self) -> Self {
        K::with(&self.shared, |state| state.senders += 1);
        Self::new(self.shared.clone())
    }
}

impl<T, K: Sharing> Drop for Sender<T, K> {
    fn drop(&mut self) {
        let receiver = K::with(&self.shared, |state| {
            state.senders -= 1;
            state.receiver_of_the_end()
        });
        if let Some(receiver) = receiver {
            wake(receiver);
        }
    }
}

/// The future of [`Sender::send`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Sending<'a, T, K: Sharing> {
    sender: &'a Sender<T, K>,
    /// Invariant: `Some` until it was sent or given back.
    value: Option<T>,
    key: Option<Key>,
}

impl<T, K: Sharing> Unpin for Sending<'_, T, K> {}

impl<T, K: Sharing> Future for Sending<'_, T, K> {
    type Output = Result<(), SendError<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let sent = poll_step(cx, |waker| {
            K::with(&this.sender.shared, |state| {
                let taken = state.room.poll_take(1, &mut this.key, waker);
                taken.map(|taken| {
                    let value = this.value.take().expect("a value is sent once");
                    match taken {
                        Ok(()) => state.push(value),
                        Err(_) => Err(value),
                    }
                })
            })
        });
        sent.map(|sent| match sent {
            Ok(receiver) => {
                if let Some(receiver) = receiver {
                    wake(receiver);
                }
                Ok(())
            }
            Err(value) => Err(SendError(value)),
        })
    }
}

impl<T, K: Sharing> Drop for Sending<'_, T, K> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.sender.withdraw(key);
        }
    }
}

/// The future of [`Sender::reserve`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Reserve<T, K: Sharing> {
    sender: Sender<T, K>,
    key: Option<Key>,
}

impl<T, K: Sharing> Unpin for Reserve<T, K> {}

impl<T, K: Sharing> Future for Reserve<T, K> {
    type Output = Result<Permit<T, K>, SendError<()>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let taken = poll_step(cx, |waker| {
            K::with(&this.sender.shared, |state| {
                state.room.poll_take(1, &mut this.key, waker)
            })
        });
        taken.map(|taken| match taken {
            Ok(()) => Ok(Permit::new(this.sender.clone())),
            Err(_) => Err(SendError(())),
        })
    }
}

impl<T, K: Sharing> Drop for Reserve<T, K> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.sender.withdraw(key);
        }
    }
}

/// Room for one value. Sending never waits, also when the receiver closes the channel meanwhile; dropping it gives the
/// room to the next sender.
#[must_use = "room goes back when it is dropped"]
pub struct Permit<T, K: Sharing> {
    sender: Sender<T, K>,
    is_used: bool,
}

impl<T, K: Sharing> Permit<T, K> {
    fn new(sender: Sender<T, K>) -> Self {
        Self {
            sender,
            is_used: false,
        }
    }

    /// Sends the value.
    ///
    /// # Errors
    /// [`SendError`] gives the value back when the receiver is gone.
    pub fn send(mut self, value: T) -> Result<(), SendError<T>> {
        let pushed = K::with(&self.sender.shared, |state| state.push(value));
        let receiver = pushed.map_err(SendError)?;
        self.is_used = true;
        if let Some(receiver) = receiver {
            wake(receiver);
        }
        Ok(())
    }
}

impl<T, K: Sharing> Drop for Permit<T, K> {
    fn drop(&mut self) {
        if self.is_used {
            return;
        }
        let receiver = K::with(&self.sender.shared, State::give_back);
        wake_all::<K, _>(&self.sender.shared, State::next_waker);
        if let Some(receiver) = receiver {
            wake(receiver);
        }
    }
}

impl<T, K: Sharing> fmt::Debug for Sender<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("capacity", &self.capacity())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

impl<T, K: Sharing> fmt::Debug for Sending<'_, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").finish_non_exhaustive()
    }
}

impl<T, K: Sharing> fmt::Debug for Reserve<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve").finish_non_exhaustive()
    }
}

impl<T, K: Sharing> fmt::Debug for Permit<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}
