//! Names of shards: by place in their runtime, and by number in the process.

use std::fmt;

/// A shard's place in its runtime, counted from zero.
///
/// Where a shard is asked for, a plain number does: `spawn_on(0, ..)`. It is taken as a `u16`, and as nothing else, so that it
/// needs no suffix. For a number that was computed there is [`Handle::shard`](crate::Handle::shard), which takes every `usize`.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Builder, ShardId};
/// assert_eq!(ShardId::from(3).index(), 3);
///
/// let runtime = Builder::new().shards(2).start()?;
/// let handle = runtime.handle();
/// let places: Vec<_> = (0..4).map(|task| handle.shard(task).index()).collect();
/// assert_eq!(places, [0, 1, 0, 1]);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct ShardId(u16);

impl ShardId {
    /// The place as an index, for tables with one row per shard.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The shard at a place.
    pub(crate) fn at(index: usize) -> Self {
        Self(u16::try_from(index).expect("a runtime has at most 1024 shards"))
    }
}

impl From<u16> for ShardId {
    fn from(index: u16) -> Self {
        Self(index)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {}", self.0)
    }
}

/// The number of shards that may live in one process at a time, over all runtimes.
pub(crate) const SHARD_NUMBER_COUNT: u16 = 1024;

/// A shard's number in the process: unique among the shards alive, and what wakers and addresses carry.
///
/// A number is used again by later runtimes, but generations go on counting, so an old id names nothing in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ShardNumber(u16);

impl ShardNumber {
    pub(crate) fn new(index: u16) -> Self {
        debug_assert!(
            index < SHARD_NUMBER_COUNT,
            "shard number {index} is out of range"
        );
        Self(index)
    }

    #[inline]
    pub(crate) fn index(self) -> u16 {
        self.0
    }
}
