//! What must be gone when the work has ended.

use std::fs;
use std::time::Duration;

use greenroom_runtime::time::{Instant, sleep};
use greenroom_runtime::{Runtime, ShardCounts, yield_now};

/// How long what was dropped may take to be gone: the kernel ends some of it in its own time.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a runtime has when nothing is done with it.
pub(crate) struct Baseline {
    process: ProcessCounts,
    live_operations: Vec<usize>,
}

/// What belongs to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessCounts {
    descriptors: usize,
}

impl Baseline {
    pub(crate) fn of(runtime: &Runtime) -> Baseline {
        let counts = runtime.handle().shards().map(|shard| {
            let counts = runtime.run_on(shard, || async {
                // The first turn has handed over what a shard always has in flight.
                yield_now().await;
                ShardCounts::current()
            });
            counts.expect("it runs on a shard").live_operations
        });
        Baseline {
            live_operations: counts.collect(),
            process: ProcessCounts::now(),
        }
    }

    /// Waits until every shard is as it was, and says what is not.
    pub(crate) fn check(&self, runtime: &Runtime) -> Vec<String> {
        let mut failures = Vec::new();
        for (shard, &live) in runtime.handle().shards().zip(&self.live_operations) {
            let left = runtime.run_on(shard, move || quiet(live));
            failures.extend(left.map(|left| format!("{shard} is left with {left}")));
        }
        let jobs = runtime.handle().blocking_counts();
        if jobs.queued + jobs.running > 0 {
            failures.push(format!("the blocking pool is left with {jobs:?}"));
        }
        failures.extend(self.process.check("the end of the work"));
        failures
    }
}

/// Waits until the current shard has nothing but this task. Returns what else it has.
async fn quiet(live_operations: usize) -> Option<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let counts = ShardCounts::current().expect("it runs on a shard");
        let is_quiet = counts.tasks == 1
            && counts.timers == 0
            && counts.open_replies == 0
            && counts.live_operations == live_operations
            && counts.pool_free == counts.pool_total;
        if is_quiet {
            return (counts.stray_panics > 0).then(|| format!("stray panics: {counts:?}"));
        }
        if Instant::now() > deadline {
            return Some(format!(
                "{counts:?}; it had {live_operations} operations at first"
            ));
        }
        sleep(Duration::from_millis(1)).await;
    }
}

impl ProcessCounts {
    pub(crate) fn now() -> ProcessCounts {
        ProcessCounts {
            // One of them is the descriptor that this itself opens.
            descriptors: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
        }
    }

    pub(crate) fn check(self, when: &str) -> Option<String> {
        let now = ProcessCounts::now();
        (now != self).then(|| {
            format!(
                "at {when} there are {now:?}, before there were {self:?}: {}",
                open_files()
            )
        })
    }
}

fn open_files() -> String {
    let links = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let links = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let links: Vec<String> = links.map(|link| link.display().to_string()).collect();
    links.join(", ")
}
