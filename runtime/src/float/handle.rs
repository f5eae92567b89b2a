//! Waiting, from anywhere, for work that any shard may do.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_channel::oneshot;

use super::board::Work;
use crate::task::{JoinError, Origin, contained, coop, spawn_from};

/// Waits for the result of work that any shard may do. `Send`, unlike a [`JoinHandle`](crate::JoinHandle).
///
/// It always resolves: to the output; to the panic of the work; or to a cancelled [`JoinError`], if the runtime ended
/// first. Dropping it detaches the work, which goes on.
///
/// # Cancel safety
/// Awaiting `&mut handle` and dropping that future loses nothing.
#[derive(Debug)]
#[must_use = "dropping the handle detaches the work; call `.detach()` to say so"]
pub struct FloatHandle<T> {
    receiver: oneshot::Receiver<Result<T, JoinError>>,
}

impl<T> FloatHandle<T> {
    /// Lets the work go on by itself.
    pub fn detach(self) {
        drop(self);
    }
}

impl<T> Future for FloatHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let received = ready!(coop::poll(cx, |cx| Pin::new(&mut self.receiver).poll(cx)));
        // The work was dropped, and the sender with it.
        Poll::Ready(received.unwrap_or_else(|oneshot::Canceled| Err(JoinError::cancelled())))
    }
}

/// Work that makes a future on whatever shard takes it, and keeps it there.
#[track_caller]
pub(super) fn birth<F, Fut>(make: F) -> (Work, FloatHandle<Fut::Output>)
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future + 'static,
    Fut::Output: Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let place = Location::caller();
    let work = move || {
        let task = spawn_from(Origin::at(place), async move {
            let outcome = contained(make).await;
            // Whoever awaited may be gone: then the outcome is dropped here, at home.
            drop(sender.send(outcome));
        });
        task.detach();
    };
    (Box::new(work), FloatHandle { receiver })
}

/// Work that calls a closure on whatever shard takes it.
pub(super) fn call<F, T>(closure: F) -> (Work, FloatHandle<T>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        let output = catch_unwind(AssertUnwindSafe(closure)).map_err(JoinError::panicked);
        // Whoever awaited may be gone.
        drop(sender.send(output));
    };
    (Box::new(work), FloatHandle { receiver })
}
