//! Work that blocks its thread: a bounded pool of threads beside the shards.
//!
//! A shard that waits in a system call, or computes for a millisecond, stops every task on it. Such work goes to the
//! pool: [`run`] hands a closure over and resolves to what it returns; the task waits, its shard does not.
//!
//! What blocks and cannot leave its thread says so with [`shard_blocking`].
//!
//! There is one pool for each runtime. It has no thread until the first job comes. A job that finds no idle thread gets
//! a new one, up to [`Builder::blocking_threads`]; beyond that it waits in line. A thread that was idle for
//! [`Builder::blocking_keep_alive`] ends. Threads of the pool belong to no shard: they may use every CPU the thread that
//! started the runtime was allowed, and none is taken for a shard by this library.
//!
//! # Life of a job
//!
//! 1. *Queued*: the [`pool::Pool`] owns it. Dropping the [`BlockingHandle`] takes it out again: it never runs.
//! 2. *Running*: its thread owns it. Nothing can stop it; dropping the handle only gives up the result, which is then
//!    dropped on the pool's thread.
//! 3. *Done*: the result, or the panic, is with the handle, whose task was woken through the injector.
//!
//! A shutdown drops what is queued, so that whoever waits gets a cancelled [`JoinError`](crate::JoinError), waits for what
//! runs up to a deadline, and reports how many jobs were still running then. Their threads are left to themselves.
//!
//! The line of waiting jobs is not bounded by a number of its own. [`run`] returns a handle that takes its job back when
//! dropped, so the line holds at most one entry for each handle that somebody keeps; [`try_run`] refuses when
//! [`Builder::blocking_queue`] jobs wait.
//!
//! [`Builder::blocking_threads`]: crate::Builder::blocking_threads
//! [`Builder::blocking_keep_alive`]: crate::Builder::blocking_keep_alive
//! [`Builder::blocking_queue`]: crate::Builder::blocking_queue

mod handle;
pub(crate) mod pool;
mod section;

pub(crate) use handle::submit;
pub use handle::{BlockingHandle, Full};
pub use pool::BlockingCounts;
pub use section::shard_blocking;

use crate::shard::context;

/// Runs a closure that may block on a thread of the pool.
///
/// The job is in line when this returns. If every thread is busy, it waits there for its turn, first come, first served.
///
/// The returned future resolves to what the closure returned.
///
/// # Errors
/// The future resolves to a [`JoinError`](crate::JoinError) that holds the payload if the closure panicked, or is
/// cancelled if the runtime shut down before the job started, or the machine refused the pool its first thread.
///
/// # Panics
/// If the calling thread is no shard: use [`Handle::run_blocking`](crate::Handle::run_blocking) there.
///
/// # Cancel safety
/// Dropping the future before the job started takes it out of the line. After that the job runs to its end and its result
/// is dropped.
///
/// # Shard affinity
/// The closure and its result cross threads, so both are `Send`. The future may be awaited anywhere.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Builder, blocking};
/// let runtime = Builder::new().shards(1).start()?;
/// let length = runtime.run_on(0, || async {
///     blocking::run(|| std::fs::read("/proc/version").map(|text| text.len())).await.unwrap()
/// });
/// assert!(length.unwrap() > 0);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn run<F, T>(work: F) -> BlockingHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let Some(pool) = context::with(|shard| shard.team().blocking().clone()) else {
        off_shard("run");
    };
    submit(&pool, work)
}

/// Runs a closure on a thread of the pool, unless too many jobs wait for one.
///
/// # Errors
/// Gives the closure back if every thread is busy and [`Builder::blocking_queue`](crate::Builder::blocking_queue) jobs
/// are in line, or if the runtime's pool has shut down.
///
/// # Panics
/// As [`run`].
///
/// # Examples
/// ```
/// use greenroom_runtime::{Builder, blocking};
/// let runtime = Builder::new().shards(1).start()?;
/// let sum = runtime.run_on(0, || async {
///     match blocking::try_run(|| 1 + 1) {
///         Ok(job) => job.await.unwrap(),
///         Err(full) => full.into_inner()(),
///     }
/// });
/// assert_eq!(sum, 2);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn try_run<F, T>(work: F) -> Result<BlockingHandle<T>, Full<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let Some(pool) = context::with(|shard| shard.team().blocking().clone()) else {
        off_shard("try_run");
    };
    handle::try_submit(&pool, work)
}

#[track_caller]
fn off_shard(name: &str) -> ! {
    panic!(
        "`blocking::{name}` was called on a thread that is no shard: use `Handle::run_blocking` there"
    )
}
