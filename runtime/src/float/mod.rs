//! The float lane: work that is not yet bound to a shard, and may move to one that has time.
//!
//! Tasks never change their shard. What has not begun may: a factory of a task, which is `Send` although the task it makes
//! is not ([`spawn_anywhere`]), and a closure that computes something ([`offload`]). A future that is `Send` is moved into
//! a factory: once it was polled it stays where it is, like every task.
//!
//! # The way of a piece of work
//!
//! ```text
//!  submit on a shard ──► its lane (256) ──► taken up by the shard itself
//!        │                   │  full                        ▲
//!        │                   ▼                              │ half of it
//!        │               overflow (65 536) ──► a sibling that has nothing to do
//!        │                   │  full
//!        ▼                   ▼
//!  lane is off ────────► an ordinary task of this shard
//! ```
//!
//! From a thread that is no shard of the runtime, work goes to the shards in turn, as a job, and takes the same way from
//! there. At the end of a shard all that was not taken up is dropped there, which resolves its handle.
//!
//! * [`notices`]: who has work, who searches, and why nobody sleeps beside a backlog. The protocol, with its models.
//! * [`board`]: what the shards of a runtime share: the far ends of the lanes, and the overflow.
//! * [`lane`]: a shard's own end, and what it has learned about the cost of its work.
//! * [`turn`]: what a shard does, in each turn and before it sleeps.
//! * [`handle`]: waiting for the result.
//!
//! A runtime that has no such work pays for it with a look at a cell in each turn, and with a fence and a load before
//! each sleep.

pub(crate) mod board;
mod handle;
pub(crate) mod lane;
mod notices;
mod turn;

pub use handle::FloatHandle;
pub use lane::FloatCounts;
pub(crate) use turn::Help;

use self::board::Work;
use crate::Handle;
use crate::shard::context;

/// Makes a task on whatever shard has time for it first.
///
/// The factory crosses to that shard. The future it makes need not be `Send`: it stays there, and what it spawns does too.
/// A future that is `Send` is spawned as `spawn_anywhere(move || future)`. There is no order between such tasks.
///
/// A shard takes up what it submitted when the turn is over, and siblings that have nothing to do take half of what is
/// waiting. With [`Builder::float_lane`](crate::Builder::float_lane) off, or with one shard, it is the current one.
///
/// # Panics
/// If the calling thread is no shard: use [`Handle::spawn_anywhere`] from outside.
///
/// # Examples
/// ```
/// use std::rc::Rc;
/// use greenroom_runtime::{current_shard, spawn_anywhere};
/// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
/// let shard = runtime.run_on(0, || async {
///     let handle = spawn_anywhere(|| {
///         let not_send = Rc::new(current_shard());
///         async move { *not_send }
///     });
///     handle.await.unwrap()
/// });
/// assert!(shard.is_some());
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn spawn_anywhere<F, Fut>(make: F) -> FloatHandle<Fut::Output>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future + 'static,
    Fut::Output: Send + 'static,
{
    let (work, handle) = handle::birth(make);
    submit_here("spawn_anywhere", work);
    handle
}

/// Computes something on whatever shard has time for it first.
///
/// For work of the processor that takes from some microseconds to about a millisecond. It is not interrupted: the shard that takes
/// it up does nothing else meanwhile. What takes longer, or blocks, does not belong on a shard at all.
///
/// # Panics
/// If the calling thread is no shard: use [`Handle::offload`] from outside. A panic of the closure is the handle's.
///
/// # Examples
/// ```
/// use greenroom_runtime::offload;
/// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
/// let sum = runtime.run_on(0, || async {
///     let parts = [0..500_u64, 500..1000].map(|part| offload(move || part.sum::<u64>()));
///     let mut sum = 0;
///     for part in parts {
///         sum += part.await.unwrap();
///     }
///     sum
/// });
/// assert_eq!(sum, 499_500);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn offload<F, T>(closure: F) -> FloatHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (work, handle) = handle::call(closure);
    submit_here("offload", work);
    handle
}

#[track_caller]
fn submit_here(function: &str, work: Work) {
    if context::with(|shard| shard.submit_float(work)).is_none() {
        panic!(
            "{function} was called on a thread that is no shard: use `Handle::{function}` from outside"
        );
    }
}

impl Handle {
    /// Makes a task on whatever shard of this runtime has time for it first, from anywhere.
    ///
    /// On a shard of this runtime it does what [`spawn_anywhere`] does. From other threads, work goes round the shards, and
    /// moves on from there if they have no time for it. Nothing bounds how much may wait: a caller that can be faster
    /// than the shards awaits what it started.
    ///
    /// # Examples
    /// ```
    /// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
    /// let handle = runtime.handle().spawn_anywhere(|| async { 6 * 7 });
    /// assert_eq!(runtime.block_on(handle).unwrap(), 42);
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[track_caller]
    pub fn spawn_anywhere<F, Fut>(&self, make: F) -> FloatHandle<Fut::Output>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let (work, handle) = handle::birth(make);
        self.submit_float(work);
        handle
    }

    /// Computes something on whatever shard of this runtime has time for it first, from anywhere.
    ///
    /// As [`offload`] does on a shard of this runtime. From other threads, see [`Handle::spawn_anywhere`].
    ///
    /// # Examples
    /// ```
    /// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
    /// let handle = runtime.handle().offload(|| (1..=20_u64).product::<u64>());
    /// assert_eq!(runtime.block_on(handle).unwrap(), 2_432_902_008_176_640_000);
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    pub fn offload<F, T>(&self, closure: F) -> FloatHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (work, handle) = handle::call(closure);
        self.submit_float(work);
        handle
    }

    fn submit_float(&self, work: Work) {
        if self.is_own_shard() {
            context::with(|shard| shard.submit_float(work));
            return;
        }
        let shard = self.team().board().next_shard();
        // A runtime that has ended drops the job, and the work with it.
        self.run(
            shard,
            Box::new(move || {
                context::with(|shard| shard.submit_float(work));
            }),
        );
    }
}
