//! What the loop of a shard counts.

use std::cell::Cell;

use super::{Shard, context};

/// A count that only its shard touches.
#[derive(Debug, Default)]
pub(crate) struct Count(Cell<u64>);

impl Count {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.set(self.0.get() + more);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }
}

/// The counts of one shard; see [`ShardMetrics`] and [`ShardCounts`](super::ShardCounts) for what they mean.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) turns: Count,
    pub(crate) polls: Count,
    pub(crate) enters: Count,
    pub(crate) parks: Count,
    pub(crate) parked_ns: Count,
    pub(crate) empty_wakes: Count,
    pub(crate) budget_yields: Count,
    pub(crate) timers_fired: Count,
    pub(crate) jobs: Count,
    pub(crate) spins_paid: Count,
    pub(crate) spins_missed: Count,
    pub(crate) doorbells_sent: Count,
    pub(crate) doorbells_elided: Count,
    pub(crate) blocking_sections: Count,
    pub(crate) blocked_ns: Count,
    pub(crate) stray_panics: Count,
}

/// What the loop of a shard has done since it started.
///
/// Every count only grows. Whoever wants rates takes two snapshots.
///
/// # Examples
/// ```
/// use greenroom_runtime::{ShardMetrics, yield_now};
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// let metrics = runtime.run_on(0, || async {
///     yield_now().await;
///     ShardMetrics::current()
/// });
/// assert!(metrics.unwrap().polls >= 1);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardMetrics {
    /// Turns of the loop.
    pub turns: u64,
    /// Polls of tasks.
    pub polls: u64,
    /// Visits to the kernel, those that needed no system call included.
    pub enters: u64,
    /// Sleeps.
    pub parks: u64,
    /// Time asleep, in nanoseconds.
    pub parked_ns: u64,
    /// Sleeps that ended with nothing to do.
    pub empty_wakes: u64,
    /// Operations that were put off because their task had spent its budget.
    pub budget_yields: u64,
    /// Times that three tasks in a row were run because the one before had woken them.
    pub lifo_capped: u64,
    /// Timers that fired.
    pub timers_fired: u64,
    /// Jobs that other threads gave to this shard.
    pub jobs: u64,
    /// Spins that news ended, each a sleep and a wake-up less.
    pub spins_paid: u64,
    /// Spins that a sleep followed.
    pub spins_missed: u64,
    /// Rings of the doorbells of sleeping shards.
    pub doorbells_sent: u64,
    /// Notices to other shards that needed no ring, because they were awake or rung already.
    pub doorbells_elided: u64,
    /// Sections that [blocked](crate::blocking::shard_blocking) the shard and said so.
    pub blocking_sections: u64,
    /// Time in those, in nanoseconds.
    pub blocked_ns: u64,
    /// Mean length of a poll in recent turns, in nanoseconds.
    pub poll_mean_ns: u64,
}

impl ShardMetrics {
    /// The metrics of the shard that the calling thread runs; `None` if it runs none.
    ///
    /// For those of another shard, call this there: `Handle::spawn_on` or `Runtime::run_on`.
    #[must_use]
    pub fn current() -> Option<Self> {
        context::with(Shard::metrics)
    }
}

impl Shard {
    pub(crate) fn count_blocking_section(&self, lasted_ns: u64) {
        self.counters.blocking_sections.add(1);
        self.counters.blocked_ns.add(lasted_ns);
    }

    pub(crate) fn metrics(&self) -> ShardMetrics {
        let counters = &self.counters;
        ShardMetrics {
            turns: counters.turns.get(),
            polls: counters.polls.get(),
            enters: counters.enters.get(),
            parks: counters.parks.get(),
            parked_ns: counters.parked_ns.get(),
            empty_wakes: counters.empty_wakes.get(),
            budget_yields: counters.budget_yields.get(),
            lifo_capped: self.tasks.borrow().chains_capped(),
            timers_fired: counters.timers_fired.get(),
            jobs: counters.jobs.get(),
            spins_paid: counters.spins_paid.get(),
            spins_missed: counters.spins_missed.get(),
            doorbells_sent: counters.doorbells_sent.get(),
            doorbells_elided: counters.doorbells_elided.get(),
            blocking_sections: counters.blocking_sections.get(),
            blocked_ns: counters.blocked_ns.get(),
            poll_mean_ns: self.pace.poll_ns(),
        }
    }
}
