//! Reaching a system from anywhere.

use greenroom_runtime::ShardId;

use super::birth::bear;
use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::error::{SpawnError, SpawnErrorKind};
use crate::life::{Newborn, Starting};
use crate::registry::{Counts, Registry};

/// Reaches a system from anywhere. Keeps nothing running.
#[derive(Clone, Debug)]
pub struct Handle {
    runtime: greenroom_runtime::Handle,
}

impl Handle {
    pub(super) fn of(runtime: &greenroom_runtime::Runtime) -> Self {
        Self {
            runtime: runtime.handle().clone(),
        }
    }

    /// The handle of the system whose shard the calling thread is.
    #[must_use]
    pub fn current() -> Option<Self> {
        greenroom_runtime::Handle::current().map(|runtime| Self { runtime })
    }

    /// The number of shards.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.runtime.shard_count()
    }

    /// All shards, in order.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = ShardId> + use<> {
        self.runtime.shards()
    }

    /// The shard whose turn it is: `turn` modulo the number of shards, so every number has one.
    ///
    /// For actors that are to be spread, where [`spawn_on`](Self::spawn_on) and the like ask for a shard.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    ///
    /// struct Worker;
    ///
    /// #[actor]
    /// impl Worker {
    ///     pub fn place(&self, ctx: &mut Ctx<Self>) -> usize { ctx.shard().index() }
    /// }
    ///
    /// let system = System::start(2)?;
    /// system.block_on(async {
    ///     for number in 0..4_usize {
    ///         let worker = system.spawn_on(system.shard(number), || Worker).await?;
    ///         assert_eq!(worker.place().await?, number % 2);
    ///     }
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    #[must_use]
    pub fn shard(&self, turn: usize) -> ShardId {
        self.runtime.shard(turn)
    }

    /// The runtime below, for tasks that are no actors.
    #[must_use]
    pub fn runtime(&self) -> &greenroom_runtime::Handle {
        &self.runtime
    }

    /// Starts an actor on a shard and waits until its start hook has run.
    ///
    /// The factory crosses to the shard; the actor is born there and need not be `Send`. A shard that is computed, and not
    /// written down, comes from [`shard`](Self::shard), or from [`shards`](Self::shards).
    ///
    /// # Errors
    /// The future resolves to a [`SpawnError`] if the factory or the start hook panics, the hook refuses, the actor is
    /// killed before the hook is done, there is no such shard, or the system is shutting down.
    ///
    /// # Cancel safety
    /// Dropping the future stops the actor, whose address nobody has then, also while its start hook runs. One that was not made
    /// yet never is.
    pub fn spawn_on<A, S, F>(
        &self,
        shard: S,
        make: F,
    ) -> impl Future<Output = Result<Addr<A>, SpawnError>> + Send + use<A, S, F>
    where
        A: Actor,
        S: Into<ShardId>,
        F: FnOnce() -> A + Send + 'static,
    {
        self.spawn_in(shard.into(), move || bear(make, |_| Ok(())))
    }

    /// Spawns on a shard by a task there, which says how it went.
    pub(crate) fn spawn_in<A, Fut, F>(
        &self,
        shard: ShardId,
        born: F,
    ) -> impl Future<Output = Result<Addr<A>, SpawnError>> + Send + use<A, Fut, F>
    where
        A: Actor,
        Fut: Future<Output = Result<Newborn<A>, SpawnErrorKind>> + 'static,
        F: FnOnce() -> Fut + Send + 'static,
    {
        let shards = self.shard_count();
        let born = Starting::new(self.runtime.spawn_on(shard, born));
        async move {
            let outcome = born
                .await
                .unwrap_or(Err(SpawnErrorKind::NoShard { shards }));
            // The id crosses back, not the address: it is `Send` whatever the actor is.
            outcome
                .map(|born| Addr::from_port(Remote::new(born.grown_up())))
                .map_err(|kind| SpawnError {
                    actor: A::NAME,
                    shard,
                    kind,
                })
        }
    }

    /// Stops all actors without a parent, on their shards.
    pub(crate) fn stop_all(&self) {
        for shard in self.shards() {
            drop(self.runtime.spawn_on(shard, || async {
                for actor in Registry::with(Registry::actors).into_iter().flatten() {
                    if actor.is_root() {
                        actor.stop();
                    }
                }
            }));
        }
    }

    /// Adds up what the shards have counted about their actors.
    pub async fn counts(&self) -> Counts {
        let asked: Vec<_> = self
            .shards()
            .map(|shard| {
                self.runtime.spawn_on(shard, || async {
                    Registry::with(Registry::counts).unwrap_or_default()
                })
            })
            .collect();
        let mut sum = Counts::default();
        for counts in asked {
            sum = sum + counts.await.unwrap_or_default();
        }
        sum
    }
}
