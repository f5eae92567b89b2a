//! A snapshot of all counters of a runtime.

use std::collections::BTreeMap;

use super::gather;
use crate::blocking::BlockingCounts;
use crate::float::FloatCounts;
use crate::runtime::{Handle, Runtime};
use crate::shard::{Shard, ShardCounts, ShardId, ShardMetrics};

/// What a runtime counts. Plain data: names and units are those of the fields.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Metrics {
    /// One entry for each shard, in their order.
    pub shards: Vec<ShardSample>,
    /// The pool of threads for what blocks.
    pub blocking: BlockingCounts,
}

/// One shard's part of [`Metrics`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardSample {
    /// Which shard.
    pub shard: ShardId,
    /// What it counts; `None` if it did not answer within 250 ms.
    pub numbers: Option<ShardNumbers>,
}

/// What one shard counts.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardNumbers {
    /// The name of the I/O backend.
    pub backend: &'static str,
    /// What it has in hand, and has seen so far.
    pub counts: ShardCounts,
    /// What its loop has done.
    pub turns: ShardMetrics,
    /// Work that may move between shards.
    pub float: FloatCounts,
    /// Operations that run, by name. The shard's own are among them.
    pub operations: BTreeMap<&'static str, usize>,
    /// The way to each peer that it has ever sent to.
    pub links: Vec<LinkSample>,
}

/// The way from one shard to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LinkSample {
    /// The shard at the other end.
    pub to: ShardId,
    /// Records that must not wait, and found the ring full.
    pub spilled: usize,
    /// Senders that wait for room in the ring.
    pub waiting: usize,
    /// Actors at the other end that asked for a pause, as their mailboxes are full.
    pub choked: usize,
}

impl LinkSample {
    /// Whether anything waits on this side.
    #[must_use]
    pub fn is_held_up(&self) -> bool {
        self.spilled + self.waiting + self.choked > 0
    }
}

impl Metrics {
    fn new(handle: &Handle, answers: Vec<Option<ShardNumbers>>) -> Self {
        let answers = handle.shards().zip(answers);
        let shards = answers.map(|(shard, numbers)| ShardSample { shard, numbers });
        Self {
            shards: shards.collect(),
            blocking: handle.blocking_counts(),
        }
    }
}

impl Runtime {
    /// Asks every shard for its counts, and waits for at most 250 ms.
    ///
    /// # Panics
    /// If the calling thread is a shard, which would block: use [`Handle::metrics`] there.
    ///
    /// # Examples
    /// ```
    /// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
    /// let metrics = runtime.metrics();
    /// for sample in &metrics.shards {
    ///     let numbers = sample.numbers.as_ref().expect("nothing holds the shard up");
    ///     assert_eq!(numbers.backend, runtime.backend());
    /// }
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn metrics(&self) -> Metrics {
        assert_no_shard("metrics");
        let answers = gather::ask_all(self.handle(), numbers);
        Metrics::new(self.handle(), answers)
    }
}

impl Handle {
    /// Asks every shard for its counts, and waits for at most 250 ms. From any thread, and without blocking it.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Examples
    /// ```
    /// use greenroom_runtime::Handle;
    /// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
    /// let metrics = runtime.run_on(0, || async { Handle::current().unwrap().metrics().await });
    /// assert!(metrics.shards.iter().all(|sample| sample.numbers.is_some()));
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    pub fn metrics(&self) -> impl Future<Output = Metrics> + Send + use<> {
        let handle = self.clone();
        async move {
            let answers = gather::ask_all_async(&handle, numbers).await;
            Metrics::new(&handle, answers)
        }
    }
}

/// A shard that waited here would wait for itself.
#[track_caller]
pub(super) fn assert_no_shard(method: &str) {
    assert!(
        crate::current_shard().is_none(),
        "`Runtime::{method}` blocks: await `Handle::{method}` on a shard"
    );
}

fn numbers(shard: &Shard) -> ShardNumbers {
    ShardNumbers {
        backend: shard.backend_name(),
        counts: shard.counts(),
        turns: shard.metrics(),
        float: shard.float().counts(),
        operations: operations(shard),
        links: links(shard),
    }
}

fn operations(shard: &Shard) -> BTreeMap<&'static str, usize> {
    let mut operations = BTreeMap::new();
    shard.driver().borrow().each_operation(|name, _| {
        *operations.entry(name).or_default() += 1;
    });
    operations
}

pub(super) fn links(shard: &Shard) -> Vec<LinkSample> {
    let peers = shard.team().shards();
    peers
        .filter_map(|peer| shard.link(peer).borrow().sample())
        .collect()
}
