//! What can be asked about the current shard from outside the crate.

use std::rc::Rc;

use super::{Shard, ShardId, context};

/// What a shard has in hand, and has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardCounts {
    /// Tasks that have not ended.
    pub tasks: usize,
    /// Timers that have not fired.
    pub timers: usize,
    /// Askers that wait, or have an answer to fetch.
    pub open_replies: usize,
    /// I/O operations the kernel, or the queue to it, holds; one of them is the doorbell's.
    pub live_operations: usize,
    /// Receive buffers of the shard; zero until the first one is needed.
    pub pool_total: usize,
    /// Those of them that nobody holds.
    pub pool_free: usize,
    /// Visits to the kernel.
    pub enters: u64,
    /// Panics of drops and wakers that the loop contained.
    pub stray_panics: u64,
}

impl ShardCounts {
    /// The counts of the shard that the calling thread runs; `None` if it runs none.
    ///
    /// # Examples
    /// ```
    /// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
    /// let counts = runtime.run_on(0, || async { greenroom_runtime::ShardCounts::current() });
    /// assert!(counts.unwrap().tasks >= 1);
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[must_use]
    pub fn current() -> Option<Self> {
        context::with(Shard::counts)
    }
}

/// The shard the calling thread runs, if it runs one.
///
/// # Examples
/// ```
/// # let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
/// assert_eq!(greenroom_runtime::current_shard(), None);
/// let shard = runtime.run_on(1, || async { greenroom_runtime::current_shard() });
/// assert_eq!(shard, Some(1.into()));
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[must_use]
pub fn current_shard() -> Option<ShardId> {
    context::with(Shard::id)
}

/// The current shard's one value of type `T`, made on first use; it lives as long as the shard.
///
/// For layers above the runtime that keep state per shard.
///
/// # Panics
/// If the calling thread is no shard.
#[track_caller]
pub fn extension<T: 'static>(make: impl FnOnce() -> T) -> Rc<T> {
    context::with(|shard| shard.extension(make))
        .unwrap_or_else(|| panic!("shard state was asked for on a thread that is no shard"))
}

impl Shard {
    pub(crate) fn counts(&self) -> ShardCounts {
        let driver = self.driver.borrow();
        let (pool_total, pool_free) = driver.pool_counts();
        ShardCounts {
            pool_total,
            pool_free,
            tasks: self.tasks.borrow().len(),
            timers: self.timers.borrow().len(),
            open_replies: self.replies.borrow().open(),
            live_operations: driver.live_ops(),
            enters: self.counters.enters.get(),
            stray_panics: self.counters.stray_panics.get(),
        }
    }
}
