//! A job and the future that waits for it.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_channel::oneshot;

use super::pool::{Job, Pool, Ticket};
use crate::task::JoinError;

/// A closure on the pool, and the wait for its result.
///
/// Dropping it takes a job that has not started out of the line; one that has started runs to its end, unheard.
///
/// # Cancel safety
/// Awaiting `&mut handle` and dropping that future loses nothing.
#[must_use = "dropping the handle cancels a job that has not started"]
pub struct BlockingHandle<T> {
    outcome: oneshot::Receiver<Result<T, Box<dyn Any + Send>>>,
    /// Where the job waits; `None` once it is known to have left the line.
    queued: Option<(Arc<Pool>, Ticket)>,
}

/// A closure that the pool had no room for.
pub struct Full<F>(F);

impl<F> Full<F> {
    /// The closure.
    pub fn into_inner(self) -> F {
        self.0
    }
}

/// Puts a job in line, however long that is.
pub(crate) fn submit<F, T>(pool: &Arc<Pool>, work: F) -> BlockingHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (sender, outcome) = oneshot::channel();
    // A job that is refused is dropped, and its sender with it: the handle resolves to cancelled.
    let ticket = pool.submit(job(sender, work)).ok();
    BlockingHandle::new(pool, outcome, ticket)
}

/// Puts a job in line if the line has room.
pub(crate) fn try_submit<F, T>(pool: &Arc<Pool>, work: F) -> Result<BlockingHandle<T>, Full<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (sender, outcome) = oneshot::channel();
    let ticket = pool
        .try_submit(work, |work| job(sender, work))
        .map_err(Full)?;
    Ok(BlockingHandle::new(pool, outcome, Some(ticket)))
}

fn job<F, T>(sender: oneshot::Sender<Result<T, Box<dyn Any + Send>>>, work: F) -> Job
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Box::new(move || {
        let outcome = catch_unwind(AssertUnwindSafe(work));
        // If nobody waits any more the result is dropped here, on the pool's thread, which contains a panic of that drop.
        drop(sender.send(outcome));
    })
}

impl<T> BlockingHandle<T> {
    fn new(
        pool: &Arc<Pool>,
        outcome: oneshot::Receiver<Result<T, Box<dyn Any + Send>>>,
        ticket: Option<Ticket>,
    ) -> Self {
        Self {
            outcome,
            queued: ticket.map(|ticket| (pool.clone(), ticket)),
        }
    }
}

impl<T> Future for BlockingHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(outcome) = Pin::new(&mut self.outcome).poll(cx) else {
            return Poll::Pending;
        };
        self.queued = None;
        Poll::Ready(match outcome {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(payload)) => Err(JoinError::panicked(payload)),
            Err(oneshot::Canceled) => Err(JoinError::cancelled()),
        })
    }
}

impl<T> Drop for BlockingHandle<T> {
    fn drop(&mut self) {
        if let Some((pool, ticket)) = self.queued.take() {
            // The closure is dropped here, by whoever gave the handle up, and outside the pool's lock.
            drop(pool.revoke(ticket));
        }
    }
}

impl<T> Unpin for BlockingHandle<T> {}

impl<T> fmt::Debug for BlockingHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingHandle").finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for Full<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Full<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("every thread of the blocking pool is busy and its line is full; raise `blocking_threads` or `blocking_queue`, or wait with `run`")
    }
}

impl<F> std::error::Error for Full<F> {}
