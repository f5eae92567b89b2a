//! A shard's own half of the float lane: its queue, and what it knows of the cost of the work in it.

use std::cell::Cell;
use std::fmt;

use crossbeam_deque::Worker;

use super::board::Work;
use crate::shard::context;

/// Pieces of work in one lane. What does not fit goes to the overflow.
pub(super) const LANE_MAX: usize = 256;
/// What it costs to wake a sleeping sibling until it runs, in nanoseconds.
pub(super) const WAKE_COST_NS: u64 = 20_000;

/// The lane of one shard. Only its shard pushes to it and takes from its front; others steal.
pub(crate) struct Lane {
    pub(super) queue: Worker<Work>,
    /// Whether the lane's bit of the notices is up.
    pub(super) raised: Cell<bool>,
    /// How long a piece of work takes, on average, the recent ones counting more.
    mean_ns: Cell<u64>,
    /// When siblings may be called again: those called before have arrived by then.
    pub(super) call_again_ns: Cell<u64>,
    /// How often the front of the lane was taken.
    pub(super) taken: Cell<u64>,
    counts: Cell<FloatCounts>,
}

/// What became of work that may move. Counted from the start of the shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FloatCounts {
    /// Pieces of work submitted here.
    pub submitted: u64,
    /// Pieces of work this shard took up, whoever submitted them.
    pub run: u64,
    /// How often this shard got work from a sibling or from the overflow, when it had none.
    pub steals: u64,
    /// Pieces of work that went to the overflow, as the lane was full.
    pub overflowed: u64,
    /// Pieces of work that could not move any more, as the overflow was full as well.
    pub bound: u64,
    /// Siblings woken to share a backlog.
    pub calls: u64,
}

impl FloatCounts {
    /// The counts of the shard that the calling thread runs; `None` if it runs none.
    ///
    /// # Examples
    /// ```
    /// use greenroom_runtime::{FloatCounts, offload};
    /// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
    /// let counts = runtime.run_on(0, || async {
    ///     offload(|| ()).await.unwrap();
    ///     FloatCounts::current().unwrap()
    /// });
    /// assert_eq!((counts.submitted, counts.run), (1, 1));
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[must_use]
    pub fn current() -> Option<Self> {
        context::with(|shard| shard.float().counts())
    }
}

impl Lane {
    pub(crate) fn new(queue: Worker<Work>) -> Self {
        Self {
            queue,
            raised: Cell::new(false),
            // Unknown work is worth a wake-up as soon as there is more than one piece.
            mean_ns: Cell::new(WAKE_COST_NS + 1),
            call_again_ns: Cell::new(0),
            taken: Cell::new(0),
            counts: Cell::default(),
        }
    }

    /// Whether the lane may hold work. What a turn looks at: a cell of the shard's own.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.raised.get()
    }

    pub(super) fn room(&self) -> usize {
        LANE_MAX.saturating_sub(self.queue.len())
    }

    pub(crate) fn counts(&self) -> FloatCounts {
        self.counts.get()
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut FloatCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Learns from a piece of work: the last eight make up about two thirds of the mean.
    pub(super) fn note_cost(&self, ns: u64) {
        let mean = self.mean_ns.get();
        self.mean_ns.set(mean - mean / 8 + ns / 8);
    }

    /// How many siblings a backlog is worth waking: at most two, as those call others.
    pub(super) fn worthy_calls(&self, backlog: usize) -> usize {
        const CALLS_MAX: u64 = 2;
        let backlog = u64::try_from(backlog).unwrap_or(u64::MAX);
        let calls = backlog.saturating_mul(self.mean_ns.get()) / WAKE_COST_NS;
        usize::try_from(calls.min(backlog).min(CALLS_MAX)).expect("at most two")
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("len", &self.queue.len())
            .field("mean_ns", &self.mean_ns.get())
            .field("counts", &self.counts.get())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Lane, WAKE_COST_NS};
    use crossbeam_deque::Worker;

    #[test]
    fn only_a_backlog_that_takes_longer_than_a_wake_up_is_worth_one() {
        let lane = Lane::new(Worker::new_fifo());
        assert_eq!(lane.worthy_calls(0), 0);
        assert_eq!(lane.worthy_calls(1), 1, "unknown work may be long");
        for _ in 0..100 {
            lane.note_cost(1_000);
        }
        assert_eq!(lane.worthy_calls(15), 0);
        assert_eq!(lane.worthy_calls(25), 1);
        assert_eq!(lane.worthy_calls(10_000), 2);
        for _ in 0..100 {
            lane.note_cost(100 * WAKE_COST_NS);
        }
        assert_eq!(lane.worthy_calls(1), 1, "nobody comes for nothing");
        assert_eq!(lane.worthy_calls(usize::MAX), 2);
    }
}
