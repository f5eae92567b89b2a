//! Tasks: futures that live on one shard.
//!
//! # The protocol
//!
//! A task is one heap cell: a header followed by the future or, later, its output. The cell has at most two
//! owners, both on the shard's own thread and both `!Send`:
//!
//! * the [`slots::Tasks`] table, from spawn until the future has finished or was cancelled;
//! * the [`JoinHandle`], from spawn until it is dropped.
//!
//! Whoever lets go last frees the cell. There is no reference count: two bits say who is still there ([`state::State`]).
//!
//! Wakers own nothing. A waker is a packed [`TaskId`] (shard, slot, generation) in the place of a data pointer, so cloning
//! and dropping one is free, and waking after the task, its shard, or the whole runtime is gone does nothing. On the
//! task's own shard a wake is a push of the slot's index into the run queue; from anywhere else it goes through
//! [`crate::inject`].
//!
//! A future is polled and dropped only by its shard's loop or by code the loop calls, never while a shard structure is
//! borrowed: user code may spawn, wake, abort and send from inside `poll` and from inside `drop`.

mod abort;
mod builder;
pub(crate) mod coop;
mod id;
mod join;
mod local;
mod origin;
mod raw;
mod ready;
mod remote;
mod select;
mod set;
mod slots;
mod state;
mod waker;

pub use abort::AbortHandle;
pub use builder::Builder;
pub use coop::{consume_budget, has_budget_remaining, unconstrained};
pub use id::Id;
pub(crate) use id::TaskId;
pub(crate) use join::contain;
#[cfg(feature = "tracing")]
pub(crate) use join::contain_silently;
pub use join::{JoinError, JoinHandle};
pub use join::{discard_payload, panic_text};
pub use local::{AccessError, LocalKey, LocalValue};
pub(crate) use origin::Origin;
pub use origin::{FirstPoll, Info};
pub(crate) use raw::{Cleared, TaskRef, new_task};
pub use ready::Class;
pub(crate) use ready::Pick;
pub use remote::RemoteJoinHandle;
pub(crate) use remote::{contained, spawn_on};
#[doc(hidden)]
pub use select::first_branch;
pub use set::JoinSet;
pub(crate) use slots::Tasks;
pub(crate) use waker::{task_waker, woken_task};

#[doc(no_inline)]
pub use futures_util::{join, try_join};

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::shard::{Shard, context};

/// Spawns a future, or what becomes one, on the current shard.
///
/// The task starts in the shard's next run of tasks, never inside this call. Dropping the handle detaches the task.
/// While the shard is shutting down the future is dropped at once and the handle resolves to a cancelled
/// [`JoinError`].
///
/// # Panics
/// If the calling thread is no shard, or if the shard already holds 4 194 304 tasks.
///
/// # Shard affinity
/// The future need not be `Send`: it is polled and dropped on this shard.
///
/// # Examples
/// ```
/// let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// let sum = runtime.run_on(0, || async {
///     let one = greenroom_runtime::spawn(async { 1 });
///     let two = greenroom_runtime::spawn(async { 2 });
///     one.await.unwrap() + two.await.unwrap()
/// });
/// assert_eq!(sum, 3);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: IntoFuture<IntoFuture: 'static, Output: 'static>,
{
    spawn_from(Origin::here(), future.into_future())
}

/// Spawns a future on the current shard, and gives the waker of its task.
///
/// The waker can be cloned, sent and woken anywhere, and keeps nothing alive. With [`FirstPoll::WhenWoken`] it is what the
/// task waits for: good for work that would find nothing to do in its first poll.
///
/// # Panics
/// As [`spawn`].
///
/// # Shard affinity
/// As [`spawn`].
///
/// # Examples
/// ```
/// use greenroom_runtime::task::{self, FirstPoll};
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let (task, waker) = task::spawn_with_waker(FirstPoll::WhenWoken, async { 7 });
///     greenroom_runtime::yield_now().await;
///     assert!(!task.is_finished());
///     waker.wake();
///     assert_eq!(task.await.unwrap(), 7);
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn spawn_with_waker<F>(first: FirstPoll, future: F) -> (JoinHandle<F::Output>, Waker)
where
    F: Future + 'static,
    F::Output: 'static,
{
    let task = spawn_from(Origin::here().polled_first(first), future);
    let waker = Waker::clone(&task_waker(task.id().task()));
    (task, waker)
}

/// Spawns a future on the current shard, for whoever called there.
#[track_caller]
pub(crate) fn spawn_from<F>(origin: Origin, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    context::with(|shard| shard.spawn(origin, future)).unwrap_or_else(|| {
        panic!("spawn was called on a thread that is no shard: use `Handle::spawn_on` from outside")
    })
}

/// The task that runs on this thread, or whose future is being dropped; `None` outside of tasks.
///
/// # Examples
/// See [`Id`].
#[must_use]
pub fn id() -> Option<Id> {
    context::with(Shard::running_task).flatten()
}

/// Lets every other ready task of this shard, its timers and its I/O go first, once.
///
/// # Cancel safety
/// Dropping the future has no effect.
///
/// # Examples
/// ```
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async { greenroom_runtime::yield_now().await });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub fn yield_now() -> impl Future<Output = ()> {
    YieldNow {
        yielded: Cell::new(false),
    }
}

struct YieldNow {
    yielded: Cell<bool>,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded.replace(true) {
            return Poll::Ready(());
        }
        // On a shard the wake comes at the end of the turn: what is ready now runs first, and timers, peers and the
        // kernel are looked at before the next poll. Elsewhere the executor decides.
        if context::with(|shard| shard.wake_later(cx.waker())).is_none() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
