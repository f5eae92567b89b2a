//! A section of a task that blocks its shard, and says so.

use crate::shard::context;

/// Runs a closure that blocks its thread right here, on the shard, which is marked as blocked meanwhile.
///
/// Nothing else on the shard goes on until it returns: no other task, no timer, no I/O. That is why [`run`](super::run) is
/// the better way for all that can leave its thread. What cannot (a foreign library with state of the thread, a large
/// `Rc` structure to be written out) goes through this, so that the rest of the runtime knows:
///
/// * what the shard has sent so far leaves before it blocks;
/// * other shards are called for work of its [float lane](crate::spawn_anywhere), and a
///   [`Distributor`](crate::net::Distributor) that looks for the shard with the least connections prefers others;
/// * the [watchdog](crate::Builder::watchdog) says of a stall that it was announced, and [`ShardMetrics`] counts it;
/// * the budget of the running task does not count what happens inside, and is what it was afterwards.
///
/// A section inside of another one, or on a thread that is no shard, only runs the closure.
///
/// # Panics
/// If the closure does; the mark is taken back and the budget restored before the panic goes on.
///
/// # Shard affinity
/// Neither the closure nor its result crosses threads.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Builder, ShardMetrics, blocking};
/// let runtime = Builder::new().shards(1).start()?;
/// let metrics = runtime.run_on(0, || async {
///     let sum: u64 = blocking::shard_blocking(|| (0..100_000_u64).sum());
///     assert_eq!(sum, 4_999_950_000);
///     ShardMetrics::current().unwrap()
/// });
/// assert_eq!(metrics.blocking_sections, 1);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
///
/// [`ShardMetrics`]: crate::ShardMetrics
pub fn shard_blocking<R>(work: impl FnOnce() -> R) -> R {
    let _marked = Marked::set();
    work()
}

/// While this lives, the current shard is marked. It knows how the shard was found.
struct Marked {
    budget: u32,
    since_ns: u64,
}

impl Marked {
    /// `None` where there is nothing to mark, and to take back.
    fn set() -> Option<Self> {
        context::with(|shard| {
            if shard.shared().is_blocked() {
                return None;
            }
            shard.publish();
            shard.offer_float();
            shard.shared().set_blocked(true);
            Some(Self {
                budget: shard.budget().suspend(),
                since_ns: shard.now_ns(),
            })
        })
        .flatten()
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        context::with(|shard| {
            shard.shared().set_blocked(false);
            shard.budget().resume(self.budget);
            shard.count_blocking_section(shard.now_ns() - self.since_ns);
        });
    }
}
