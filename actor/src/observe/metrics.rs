//! How many actors there are of each type, and how much they do.

use std::collections::BTreeMap;
use std::fmt;

use greenroom_runtime::ShardId;
use greenroom_runtime::observe::{Found, RunningTask};

use crate::registry::Registry;
use crate::system::{Handle, System};

/// What was counted of the actors of a system, type by type. `Display` writes the sums for people.
///
/// Counts only grow, but for the number of those that live: who wants rates takes two of these. Types of the same name are counted
/// together.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// #[derive(Default)]
/// struct Till { sum: u64 }
///
/// #[actor]
/// impl Till {
///     pub fn pay(&mut self, coins: u64) -> u64 { self.sum += coins; self.sum }
/// }
///
/// let system = System::start(2)?;
/// let till = system.block_on(system.spawn_on(1, Till::default))?;
/// system.block_on(till.pay(5))?;
/// let sums = system.metrics().sums();
/// assert_eq!((sums[0].actor, sums[0].live, sums[0].handled), ("Till", 1, 1));
/// # Ok::<(), greenroom::Error>(())
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Metrics {
    /// One entry for each shard, in their order.
    pub shards: Vec<ShardMetrics>,
}

/// One shard's part of [`Metrics`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShardMetrics {
    /// Which shard.
    pub shard: ShardId,
    /// What it has counted, one entry for each type that it had actors of, by name; `None` if it did not answer within
    /// 250 ms: it is stuck, or has ended.
    pub types: Option<Vec<TypeMetrics>>,
    /// The task a shard that did not answer is stuck in. Known if the
    /// [watchdog](greenroom_runtime::Builder::watchdog) is on, and the shard is in a task at all.
    pub stuck_in: Option<RunningTask>,
}

/// What was counted of the actors of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TypeMetrics {
    /// The name of the type, or what `#[actor(name = ..)]` says.
    pub actor: &'static str,
    /// Actors there are.
    pub live: usize,
    /// Actors there were, with those that are. One that is restarted is one.
    pub started: u64,
    /// Incarnations that followed another one.
    pub restarted: u64,
    /// Incarnations that failed: by a panic, by a start that was refused, or with a child or somebody they were linked to.
    pub failed: u64,
    /// Messages whose handlers have begun.
    pub handled: u64,
    /// Handlers that returned an error, whether they were asked or told.
    pub errors: u64,
    /// Messages that reached nobody, see [`DeadLetter`](super::DeadLetter).
    pub dead_letters: u64,
    /// How long handlers and hooks ran, waits apart, in nanoseconds. `None` if it was not
    /// [asked for](crate::Builder::measure_busy_time).
    pub busy_ns: Option<u64>,
}

impl TypeMetrics {
    /// Adds what was counted elsewhere.
    fn add(&mut self, other: &Self) {
        self.live += other.live;
        self.started += other.started;
        self.restarted += other.restarted;
        self.failed += other.failed;
        self.handled += other.handled;
        self.errors += other.errors;
        self.dead_letters += other.dead_letters;
        self.busy_ns = match (self.busy_ns, other.busy_ns) {
            (Some(busy_ns), Some(more_ns)) => Some(busy_ns + more_ns),
            (one, other) => one.or(other),
        };
    }
}

impl Metrics {
    fn new(found: Vec<Found<Vec<TypeMetrics>>>) -> Self {
        let shards = found.into_iter().map(|found| ShardMetrics {
            shard: found.shard,
            types: found.answer,
            stuck_in: found.stuck_in,
        });
        Self {
            shards: shards.collect(),
        }
    }

    /// What the shards that answered have counted together, one entry for each type, by name.
    #[must_use]
    pub fn sums(&self) -> Vec<TypeMetrics> {
        sums(
            self.shards
                .iter()
                .filter_map(|shard| shard.types.as_ref())
                .flatten()
                .cloned(),
        )
    }

    /// The metrics as JSON.
    #[cfg(feature = "json")]
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data with text keys")
    }
}

/// One entry for each name.
fn sums(all: impl Iterator<Item = TypeMetrics>) -> Vec<TypeMetrics> {
    let mut sums = BTreeMap::<_, TypeMetrics>::new();
    for one in all {
        if let Some(sum) = sums.get_mut(one.actor) {
            sum.add(&one);
        } else {
            sums.insert(one.actor, one);
        }
    }
    sums.into_values().collect()
}

impl System {
    /// What was counted of the actors, type by type. A shard that does not answer within 250 ms is left out.
    ///
    /// It takes as long as there are types, however many actors there are.
    ///
    /// # Panics
    /// If the calling thread is a shard, which would block: use [`Handle::metrics`] there.
    #[must_use]
    #[track_caller]
    pub fn metrics(&self) -> Metrics {
        Metrics::new(self.survey(types))
    }
}

impl Handle {
    /// What was counted of the actors, as [`System::metrics`]. From any thread, and without blocking it.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub fn metrics(&self) -> impl Future<Output = Metrics> + Send + use<> {
        let found = self.runtime().survey(types);
        async move { Metrics::new(found.await) }
    }
}

/// What the calling shard has counted.
fn types() -> Vec<TypeMetrics> {
    let registry = Registry::current().expect("a survey asks shards");
    sums(registry.tallies().iter().map(|tally| tally.metrics()))
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sums().iter().try_for_each(|sum| writeln!(f, "{sum}"))
    }
}

impl fmt::Display for TypeMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            actor,
            live,
            started,
            restarted,
            failed,
            handled,
            errors,
            dead_letters,
            busy_ns,
        } = self;
        write!(f, "{actor}: {live} of {started}, {handled} handled")?;
        let rare = [
            (failed, "failed"),
            (restarted, "restarted"),
            (errors, "errors"),
            (dead_letters, "dead letters"),
        ];
        for (count, what) in rare {
            if *count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        match busy_ns {
            Some(busy_ns) => write!(f, ", busy for {} ms", busy_ns / 1_000_000),
            None => Ok(()),
        }
    }
}
