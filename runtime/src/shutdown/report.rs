//! What a shutdown leaves to say.

use std::fmt;
use std::time::Duration;

use super::Phase;
use crate::blocking::pool::PoolReport;
use crate::launch::warn;
use crate::shard::ShardId;

/// What became of everything when a runtime shut down.
///
/// # Examples
/// ```
/// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
/// runtime.run_on(1, || async { greenroom_runtime::spawn(std::future::pending::<()>()).detach() });
/// let report = runtime.shutdown();
/// assert_eq!((report.dropped_tasks(), report.leaked_operations()), (1, 0));
/// assert_eq!(report.stuck().count(), 0);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    shards: Vec<ShardReport>,
    jobs: PoolReport,
}

/// What became of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardReport {
    shard: ShardId,
    dropped_tasks: usize,
    refused_jobs: usize,
    leaked_operations: usize,
    pub(super) stuck: Option<Stuck>,
}

/// A shard that did not end in time. Its thread was left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    pub(super) shard: ShardId,
    pub(super) phase: Phase,
    pub(super) since: Duration,
}

impl ShutdownReport {
    pub(crate) fn new(shards: Vec<ShardReport>, jobs: PoolReport) -> Self {
        Self { shards, jobs }
    }

    /// Says on standard error what was left behind, for when nobody gets the report.
    pub(crate) fn warn(&self) {
        for stuck in self.stuck() {
            warn(&format!("greenroom: {stuck}; its thread was left behind"));
        }
        if self.jobs.stuck > 0 {
            let count = self.jobs.stuck;
            warn(&format!(
                "greenroom: {count} jobs of the blocking pool did not end; their threads were left behind"
            ));
        }
    }

    /// Each shard's part.
    #[must_use]
    pub fn shards(&self) -> &[ShardReport] {
        &self.shards
    }

    /// Tasks that had not ended, and were dropped.
    #[must_use]
    pub fn dropped_tasks(&self) -> usize {
        self.shards.iter().map(ShardReport::dropped_tasks).sum()
    }

    /// Operations the kernel did not give back in time; their memory was leaked, not freed. Normally zero.
    #[must_use]
    pub fn leaked_operations(&self) -> usize {
        self.shards.iter().map(ShardReport::leaked_operations).sum()
    }

    /// Jobs of the blocking pool that were still in line, and never ran.
    #[must_use]
    pub fn dropped_jobs(&self) -> usize {
        self.jobs.dropped
    }

    /// Jobs of the blocking pool that still ran at the deadline. Their threads were left behind.
    #[must_use]
    pub fn stuck_jobs(&self) -> usize {
        self.jobs.stuck
    }

    /// Shards that did not end in time. Their threads were left behind.
    pub fn stuck(&self) -> impl Iterator<Item = Stuck> {
        self.shards.iter().filter_map(ShardReport::stuck)
    }
}

impl ShardReport {
    pub(super) fn new(shard: ShardId) -> Self {
        Self {
            shard,
            dropped_tasks: 0,
            refused_jobs: 0,
            leaked_operations: 0,
            stuck: None,
        }
    }

    pub(crate) fn note_dropped_tasks(&mut self, count: usize) {
        self.dropped_tasks = count;
    }

    pub(crate) fn note_refused_jobs(&mut self, count: usize) {
        self.refused_jobs = count;
    }

    pub(crate) fn note_leaks(&mut self, operations: usize) {
        self.leaked_operations = operations;
    }

    /// The shard.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// Tasks of it that had not ended, and were dropped.
    #[must_use]
    pub fn dropped_tasks(&self) -> usize {
        self.dropped_tasks
    }

    /// Closures from other threads that reached it when it had closed, and were dropped.
    #[must_use]
    pub fn refused_jobs(&self) -> usize {
        self.refused_jobs
    }

    /// Operations of it that the kernel did not give back in time.
    #[must_use]
    pub fn leaked_operations(&self) -> usize {
        self.leaked_operations
    }

    /// Where it got stuck, if it did. Then its other numbers are what was known at that time.
    #[must_use]
    pub fn stuck(&self) -> Option<Stuck> {
        self.stuck
    }
}

impl Stuck {
    /// The shard.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// The phase it did not come out of. A shard that has not even noticed the shutdown is where it was before.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// How long it had been in that phase, counted from when it was asked to stop at the earliest.
    #[must_use]
    pub fn since(&self) -> Duration {
        self.since
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.phase {
            Phase::Running | Phase::Draining => "did not answer, as one of its tasks blocks it,",
            Phase::Cancelling => "did not finish dropping its tasks",
            Phase::Quiescing => "was not done with its I/O",
            Phase::Waiting => "did not finish what its peers had sent",
            Phase::Closed => "has ended",
        };
        write!(f, "{} {doing} within {:.1?}", self.shard, self.since)
    }
}
