//! One value, from one task to another.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::super::sharing::Sharing;
use super::super::waiters::{poll_step, register, wake};

struct State<T> {
    value: Option<T>,
    has_sender: bool,
    /// The receiver still takes a value.
    is_open: bool,
    receiver: Option<Waker>,
    /// Waits for the receiver to go.
    sender: Option<Waker>,
}

/// Opens a channel for one value.
pub fn channel<T, K: Sharing>() -> (Sender<T, K>, Receiver<T, K>) {
    let shared = K::share(State {
        value: None,
        has_sender: true,
        is_open: true,
        receiver: None,
        sender: None,
    });
    (
        Sender {
            shared: shared.clone(),
        },
        Receiver { shared },
    )
}

/// The end that sends.
pub struct Sender<T, K: Sharing> {
    shared: K::Shared<State<T>>,
}

impl<T, K: Sharing> Sender<T, K> {
    /// Sends the value.
    ///
    /// # Errors
    /// Gives the value back when the receiver is gone or was closed. A value that was sent may still be dropped with its
    /// receiver.
    pub fn send(self, value: T) -> Result<(), T> {
        let receiver = K::with(&self.shared, |state| {
            if !state.is_open {
                return Err(value);
            }
            state.value = Some(value);
            state.has_sender = false;
            Ok(state.receiver.take())
        })?;
        if let Some(receiver) = receiver {
            wake(receiver);
        }
        Ok(())
    }

    /// Whether the receiver is gone or was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        K::with(&self.shared, |state| !state.is_open)
    }

    /// Waits until the receiver is gone or closed: nobody wants the value any more.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn closed(&mut self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// As [`Sender::closed`], for hand-written futures.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        poll_step(cx, |waker| {
            K::with(&self.shared, |state| {
                if !state.is_open {
                    return Poll::Ready(());
                }
                register(&mut state.sender, waker);
                Poll::Pending
            })
        })
    }
}

impl<T, K: Sharing> Drop for Sender<T, K> {
    fn drop(&mut self) {
        let (receiver, own) = K::with(&self.shared, |state| {
            let receiver = mem::take(&mut state.has_sender)
                .then(|| state.receiver.take())
                .flatten();
            (receiver, state.sender.take())
        });
        if let Some(receiver) = receiver {
            wake(receiver);
        }
        drop(own);
    }
}

/// The end that receives: a future of the value.
///
/// # Cancel safety
/// Awaiting `&mut receiver` and dropping that future loses nothing. Dropping the receiver drops a value that was sent.
#[must_use = "the sender fails when the receiver is dropped"]
pub struct Receiver<T, K: Sharing> {
    shared: K::Shared<State<T>>,
}

impl<T, K: Sharing> Receiver<T, K> {
    /// Takes the value if it is there.
    ///
    /// # Errors
    /// [`TryRecvError`] says whether it may still come.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        K::with(&self.shared, State::take)
    }

    /// Keeps the sender from sending. A value that was sent already can still be received.
    pub fn close(&mut self) {
        let sender = K::with(&self.shared, |state| {
            state.is_open = false;
            state.sender.take()
        });
        if let Some(sender) = sender {
            wake(sender);
        }
    }
}

impl<T> State<T> {
    fn take(&mut self) -> Result<T, TryRecvError> {
        match self.value.take() {
            Some(value) => {
                self.is_open = false;
                Ok(value)
            }
            None if self.has_sender && self.is_open => Err(TryRecvError::Empty),
            None => Err(TryRecvError::Closed),
        }
    }
}

impl<T, K: Sharing> Future for Receiver<T, K> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_step(cx, |waker| {
            K::with(&self.shared, |state| match state.take() {
                Ok(value) => Poll::Ready(Ok(value)),
                Err(TryRecvError::Closed) => Poll::Ready(Err(RecvError)),
                Err(TryRecvError::Empty) => {
                    register(&mut state.receiver, waker);
                    Poll::Pending
                }
            })
        })
    }
}

impl<T, K: Sharing> Drop for Receiver<T, K> {
    fn drop(&mut self) {
        let (sender, own, value) = K::with(&self.shared, |state| {
            state.is_open = false;
            (
                state.sender.take(),
                state.receiver.take(),
                state.value.take(),
            )
        });
        if let Some(sender) = sender {
            wake(sender);
        }
        drop(own);
        drop(value);
    }
}

impl<T, K: Sharing> fmt::Debug for Sender<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T, K: Sharing> fmt::Debug for Receiver<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_ready = K::with(&self.shared, |state| state.value.is_some());
        f.debug_struct("Receiver")
            .field("is_ready", &is_ready)
            .finish_non_exhaustive()
    }
}

/// No value comes: the sender was dropped without sending, or the value was taken, or the receiver was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sender was dropped without sending")
    }
}

impl std::error::Error for RecvError {}

/// Why there is no value now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// It was not sent yet.
    Empty,
    /// It does not come any more.
    Closed,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the value was not sent yet",
            Self::Closed => "the sender was dropped without sending",
        })
    }
}

impl std::error::Error for TryRecvError {}
