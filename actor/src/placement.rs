//! Which shard: one actor of a kind on every shard, reached by shard or by key.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use greenroom_runtime::ShardId;

use crate::actor::Actor;
use crate::address::Addr;

/// One instance of an actor on every shard of a system.
///
/// An instance is named by its shard ([`Sharded::on`], [`Sharded::local`]), by a key ([`Sharded::by_key`]), or by the key in the
/// message ([`Sharded::route`]). Cloning it is cheap, and it can be sent anywhere. Its addresses keep nothing alive.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// #[derive(Default)]
/// struct Hits { n: u64 }
///
/// #[actor]
/// impl Hits {
///     pub fn hit(&mut self) -> u64 { self.n += 1; self.n }
/// }
///
/// let system = System::start(2)?;
/// system.block_on(async {
///     let hits = system.spawn_sharded(|_shard| Hits::default()).await?;
///     assert_eq!(hits.by_key("a page").hit().await?, 1);
///     assert_eq!(hits.by_key("a page").hit().await?, 2);
///     let mut all = 0;
///     for hits in hits.each() {
///         all += hits.hit().await? - 1;
///     }
///     assert_eq!(all, 2);
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
pub struct Sharded<A: Actor> {
    instances: Arc<[Addr<A>]>,
}

impl<A: Actor> Sharded<A> {
    /// `instances` are in the order of their shards, one for each.
    pub(crate) fn new(instances: Vec<Addr<A>>) -> Self {
        Self {
            instances: instances.into(),
        }
    }

    /// The instance on the calling shard.
    ///
    /// # Panics
    /// If the calling thread is no shard of the system.
    #[must_use]
    #[track_caller]
    pub fn local(&self) -> Addr<A> {
        let here = greenroom_runtime::current_shard()
            .and_then(|shard| self.instances.get(shard.index()).copied())
            .filter(|addr| Addr::shard(*addr) == greenroom_runtime::current_shard());
        let Some(here) = here else {
            panic!(
                "`Sharded::local` was called on a thread that is no shard of the system: use `on` or `by_key`"
            )
        };
        here
    }

    /// The instance on a shard.
    ///
    /// # Panics
    /// If there is no such shard.
    #[must_use]
    #[track_caller]
    pub fn on(&self, shard: impl Into<ShardId>) -> Addr<A> {
        let shard = shard.into();
        let count = self.instances.len();
        let Some(instance) = self.instances.get(shard.index()) else {
            panic!("there is no {shard}: the system has {count} shards, counted from 0")
        };
        *instance
    }

    /// The instance that owns a key: always the same one for equal keys, in every run with as many shards.
    #[must_use]
    pub fn by_key<K: Hash + ?Sized>(&self, key: &K) -> Addr<A> {
        self.instances[self.shard_of(key).index()]
    }

    /// The shard that owns a key.
    #[must_use]
    pub fn shard_of<K: Hash + ?Sized>(&self, key: &K) -> ShardId {
        shard_at(hash_of(key), self.instances.len())
    }

    pub(crate) fn instances(&self) -> &[Addr<A>] {
        &self.instances
    }

    /// All instances, in the order of their shards.
    pub fn each(&self) -> impl ExactSizeIterator<Item = Addr<A>> + '_ {
        self.instances.iter().copied()
    }

    /// The number of instances, which is the number of shards.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.instances.len()
    }

    /// Stops every instance, see [`Addr::stop`]; the future is done when all have ended.
    ///
    /// The stops are sent by this call, awaited or not.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + use<A> {
        let stopping: Vec<_> = self
            .each()
            .map(|instance| {
                Addr::stop(instance);
                Addr::stopped(instance)
            })
            .collect();
        async move {
            for stopping in stopping {
                stopping.await;
            }
        }
    }
}

/// The hash that decides on the shard of a key.
#[inline]
pub(crate) fn hash_of<K: Hash + ?Sized>(key: &K) -> u64 {
    // Keyed with constants: placement must not change from run to run, and a table on the shard, with keys of its own,
    // sees nothing of it.
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// The one of `shards` shards that owns the keys of this hash.
#[inline]
pub(crate) fn shard_at(hash: u64, shards: usize) -> ShardId {
    let index = owner_of(hash, shards);
    ShardId::from(u16::try_from(index).expect("a system has fewer shards"))
}

/// The one of so many that owns the keys of this hash.
#[inline]
pub(crate) fn owner_of(hash: u64, count: usize) -> usize {
    let scaled = (u128::from(hash) * count as u128) >> 64;
    usize::try_from(scaled).expect("a fraction of the count")
}

impl<A: Actor> Clone for Sharded<A> {
    fn clone(&self) -> Self {
        Self {
            instances: self.instances.clone(),
        }
    }
}

impl<A: Actor> fmt::Debug for Sharded<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sharded").field(&self.instances).finish()
    }
}
