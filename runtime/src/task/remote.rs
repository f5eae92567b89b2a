//! Tasks spawned on a shard from anywhere, and waiting for their end.
//!
//! The closure travels as a job of the injector. On the shard it becomes one task, which sends its outcome home through a
//! channel. Whatever becomes of the job or the task (the shard is gone, it shuts down, the task is aborted), the sending
//! end is dropped, and the handle resolves.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_channel::oneshot;

use super::abort::{AbortHandle, abort};
use super::coop;
use super::id::Id;
use super::join::{JoinError, contain, settle};
use super::origin::Origin;
use super::spawn_from;
use crate::runtime::Handle;
use crate::shard::ShardId;

/// Spawns a task on a shard; the closure crosses and makes its future there.
pub(crate) fn spawn_on<F, Fut>(
    runtime: &Handle,
    shard: ShardId,
    origin: Origin,
    make: F,
) -> RemoteJoinHandle<Fut::Output>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future + 'static,
    Fut::Output: Send + 'static,
{
    let (sender, outcome) = oneshot::channel();
    let birth = Arc::new(Birth {
        runtime: runtime.clone(),
        shard,
        id: OnceLock::new(),
    });
    let theirs = birth.clone();
    let job = move || {
        let task = spawn_from(origin, async move {
            let outcome = contained(make).await;
            // Whoever awaited may be gone: then the outcome is dropped here, at home.
            drop(sender.send(outcome));
        });
        theirs.id.get_or_init(|| task.id());
        task.detach();
    };
    // A shard that is gone, or never was, drops the closure and with it the sender; so does a runtime that is ending.
    if runtime.admits() {
        runtime.run(shard, Box::new(job));
    }
    RemoteJoinHandle { outcome, birth }
}

/// Makes a future, runs it to its end and drops it, each with its panics caught.
pub(crate) async fn contained<Fut: Future>(
    make: impl FnOnce() -> Fut,
) -> Result<Fut::Output, JoinError> {
    let future = catch_unwind(AssertUnwindSafe(make)).map_err(JoinError::panicked)?;
    let mut future = pin!(Some(future));
    let polled = std::future::poll_fn(|cx| {
        let future = future.as_mut().as_pin_mut().expect("dropped below alone");
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    })
    .await;
    let dropped = catch_unwind(AssertUnwindSafe(|| future.set(None)));
    settle(polled, dropped.err())
}

/// Where a task is spawned, and what became of it.
#[derive(Debug)]
pub(super) struct Birth {
    runtime: Handle,
    shard: ShardId,
    /// Set by the job that spawns the task.
    id: OnceLock<Id>,
}

impl Birth {
    pub(super) fn id(&self) -> Option<Id> {
        self.id.get().copied()
    }

    /// Aborts the task, also when the message that spawns it is still on its way.
    pub(super) fn abort(self: &Arc<Self>) {
        if let Some(id) = self.id() {
            return abort(id);
        }
        let birth = self.clone();
        // Jobs of a shard run in the order in which they were sent, so the task is spawned by then, or never will be.
        let job = move || {
            if let Some(id) = birth.id() {
                abort(id);
            }
        };
        self.runtime.run(self.shard, Box::new(job));
    }
}

/// An owned permission to wait, on any thread, for the output of a task on some shard.
///
/// Dropping it detaches the task, which goes on.
///
/// # Cancel safety
/// Awaiting `&mut handle` and dropping that future loses nothing.
#[must_use = "dropping a join handle detaches the task; call `.detach()` to say so"]
pub struct RemoteJoinHandle<T> {
    outcome: oneshot::Receiver<Result<T, JoinError>>,
    birth: Arc<Birth>,
}

impl<T> RemoteJoinHandle<T> {
    /// Lets the task run on by itself.
    pub fn detach(self) {
        drop(self);
    }

    /// Asks the shard to cancel the task; see [`AbortHandle::abort`]. It may finish before the message arrives.
    pub fn abort(&self) {
        self.birth.abort();
    }

    /// A handle that can only abort the task, from anywhere.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle::of_remote(self.birth.clone())
    }

    /// The shard it was sent to.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.birth.shard
    }

    /// The task's id, once the shard has spawned it.
    #[must_use]
    pub fn id(&self) -> Option<Id> {
        self.birth.id()
    }
}

impl<T> Drop for RemoteJoinHandle<T> {
    fn drop(&mut self) {
        // An output that nobody takes is dropped as that of a task of this shard is: its panic is its own affair.
        contain(|| {
            self.outcome.close();
            drop(self.outcome.try_recv());
        });
    }
}

impl<T> Future for RemoteJoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(coop::poll(cx, |cx| Pin::new(&mut self.outcome).poll(cx)));
        Poll::Ready(outcome.unwrap_or_else(|oneshot::Canceled| Err(JoinError::cancelled())))
    }
}

impl<T> fmt::Debug for RemoteJoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteJoinHandle")
            .field("shard", &self.birth.shard)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}
