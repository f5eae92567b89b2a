//! The end that receives.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::super::super::sharing::Sharing;
use super::super::super::waiters::{poll_step, register, wake_all};
use super::{State, TryRecvError};

/// The end that receives. When it is dropped the channel is closed, and what was in it is dropped.
pub struct Receiver<T, K: Sharing> {
    shared: K::Shared<State<T>>,
}

impl<T, K: Sharing> Receiver<T, K> {
    pub(super) fn new(shared: K::Shared<State<T>>) -> Self {
        Self { shared }
    }

    /// Waits for the next value; `None` when none comes any more.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Waits for values and appends up to `limit` of them to `buffer`; returns how many.
    ///
    /// Zero says that none comes any more, or that the limit is zero.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: values are taken only when it is ready.
    pub async fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        if limit == 0 {
            return 0;
        }
        poll_fn(|cx| {
            self.poll_take(cx, |queue| {
                let count = queue.len().min(limit);
                buffer.extend(queue.drain(..count));
                count
            })
        })
        .await
    }

    /// Takes the next value if it is there.
    ///
    /// # Errors
    /// [`TryRecvError`] says whether one may come.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let taken = K::with(&self.shared, |state| {
            let value = state.queue.pop_front();
            state.room.give(usize::from(value.is_some()));
            match value {
                Some(value) => Ok(value),
                None if state.is_finished() => Err(TryRecvError::Closed),
                None => Err(TryRecvError::Empty),
            }
        });
        if taken.is_ok() {
            wake_all::<K, _>(&self.shared, State::next_waker);
        }
        taken
    }

    /// As [`Receiver::recv`], for hand-written futures.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut value = None;
        let polled = self.poll_take(cx, |queue| {
            value = queue.pop_front();
            usize::from(value.is_some())
        });
        polled.map(|_count| value)
    }

    /// Polls for values, of which `take` takes some out and says how many.
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&mut std::collections::VecDeque<T>) -> usize,
    ) -> Poll<usize> {
        let polled = poll_step(cx, |waker| {
            K::with(&self.shared, |state| {
                let count = take(&mut state.queue);
                if count == 0 && !state.is_finished() {
                    register(&mut state.receiver, waker);
                    return Poll::Pending;
                }
                state.room.give(count);
                Poll::Ready(count)
            })
        });
        if polled.is_ready() {
            wake_all::<K, _>(&self.shared, State::next_waker);
        }
        polled
    }

    /// Closes the channel: sending fails from now on. What was sent, or had room already, can still be received.
    pub fn close(&mut self) {
        K::with(&self.shared, State::close);
        wake_all::<K, _>(&self.shared, State::next_waker);
    }

    /// Whether the channel was closed, or all senders are gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        K::with(&self.shared, |state| {
            state.room.is_closed() || state.senders == 0
        })
    }

    /// How many values wait to be received.
    #[must_use]
    pub fn len(&self) -> usize {
        K::with(&self.shared, |state| state.queue.len())
    }

    /// Whether no value waits to be received.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T, K: Sharing> Unpin for Receiver<T, K> {}

impl<T, K: Sharing> Stream for Receiver<T, K> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv(cx)
    }
}

impl<T, K: Sharing> Drop for Receiver<T, K> {
    fn drop(&mut self) {
        let (values, own): (_, Option<Waker>) = K::with(&self.shared, |state| {
            state.close();
            state.has_receiver = false;
            (mem::take(&mut state.queue), state.receiver.take())
        });
        wake_all::<K, _>(&self.shared, State::next_waker);
        drop(own);
        drop(values);
    }
}

impl<T, K: Sharing> fmt::Debug for Receiver<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}
