//! How a family of virtual actors is made.

use std::fmt;
use std::future::ready;
use std::hash::Hash;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::keeper::Keeper;
use super::{Family, Keyed, Live};
use crate::actor::Actor;
use crate::error::{SpawnError, SpawnErrorKind, StartFailure};
use crate::system::Handle;

/// An instance on its way.
pub(super) type Birth<A> = Pin<Box<dyn Future<Output = Result<A, StartFailure>>>>;

/// Makes instances, on one shard.
pub(super) type Factory<K, A> = Box<dyn Fn(Rc<K>) -> Birth<A>>;

/// Makes the factory of a shard, there.
type FactoryMaker<K, A> = Arc<dyn Fn() -> Factory<K, A> + Send + Sync>;

/// A quarter of an hour.
const IDLE: Duration = Duration::from_secs(15 * 60);

impl Handle {
    /// Actors by key; see [`Keyed`]. The factory makes the instance of a key, on the key's shard.
    ///
    /// Every shard gets a clone of the factory. If it panics, askers get that as the cause, and the next message tries again.
    pub fn keyed<K, A, F>(&self, make: F) -> KeyedBuilder<K, A>
    where
        K: Hash + Eq + Send + 'static,
        A: Actor,
        F: Fn(&K) -> A + Clone + Send + Sync + 'static,
    {
        KeyedBuilder::new(
            self,
            Arc::new(move || {
                let make = make.clone();
                Box::new(move |key| {
                    // Called when it is polled, so that a panic is one of the instance.
                    let make = make.clone();
                    Box::pin(async move { Ok(make(&key)) })
                })
            }),
        )
    }

    /// Actors by key whose instances take time to make, or may fail to start; see [`Keyed`].
    ///
    /// Messages wait until the instance is there. If there is none, askers get the error as the cause, and the next message
    /// tries again.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    ///
    /// struct Page { text: String }
    ///
    /// #[actor]
    /// impl Page {
    ///     pub fn len(&self) -> usize { self.text.len() }
    /// }
    ///
    /// let system = System::start(2)?;
    /// system.block_on(async {
    ///     let pages = system
    ///         .keyed_with(async |path: &String| {
    ///             let text = greenroom::runtime::fs::read_to_string(path).await?;
    ///             Ok::<_, std::io::Error>(Page { text })
    ///         })
    ///         .start()
    ///         .await?;
    ///     let error = pages.at("no/such/file").len().await.unwrap_err();
    ///     assert!(error.to_string().contains("did not start: open no/such/file"), "{error}");
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn keyed_with<K, A, E, F>(&self, make: F) -> KeyedBuilder<K, A>
    where
        K: Hash + Eq + Send + 'static,
        A: Actor,
        E: fmt::Display,
        F: AsyncFn(&K) -> Result<A, E> + Clone + Send + Sync + 'static,
    {
        KeyedBuilder::new(
            self,
            Arc::new(move || {
                let make = make.clone();
                Box::new(move |key| {
                    let make = make.clone();
                    Box::pin(async move { make(&key).await.map_err(StartFailure::new) })
                })
            }),
        )
    }
}

/// Chooses what a [`Keyed`] is like, then starts it.
#[must_use = "a builder does nothing until `start`"]
pub struct KeyedBuilder<K: 'static, A: Actor> {
    handle: Handle,
    make: FactoryMaker<K, A>,
    idle: Option<Duration>,
    family: PhantomData<fn() -> Keyed<K, A>>,
}

impl<K, A> KeyedBuilder<K, A>
where
    K: Hash + Eq + Send + 'static,
    A: Actor,
{
    fn new(handle: &Handle, make: FactoryMaker<K, A>) -> Self {
        Self {
            handle: handle.clone(),
            make,
            idle: Some(IDLE),
            family: PhantomData,
        }
    }

    /// For how long an instance may go without a call before it ends. Default: 15 minutes.
    ///
    /// It ends when it was idle for at least so long, and at most a quarter longer (4 ms is the shortest time there is): its stopping hook runs, and its state is
    /// dropped. Calls through [`Keyed::at`] count, calls through an address of the instance do not; and an instance that has
    /// something to do is not idle.
    pub fn idle_after(self, limit: Duration) -> Self {
        Self {
            idle: Some(limit),
            ..self
        }
    }

    /// Instances stay until they are stopped.
    pub fn never_idle(self) -> Self {
        Self { idle: None, ..self }
    }

    /// Starts it: on all shards, or not at all. No instance is made yet.
    ///
    /// # Errors
    /// The future resolves to a [`SpawnError`] if the system is shutting down.
    pub fn start(self) -> impl Future<Output = Result<Keyed<K, A>, SpawnError>> + Send + use<K, A> {
        let live = Arc::new(Live::new(self.handle.shard_count()));
        let shards = self.handle.shard_count();
        let settling: Vec<_> = self
            .handle
            .shards()
            .map(|shard| {
                let (make, idle, live) = (self.make.clone(), self.idle, live.clone());
                let settle = move || ready(Keeper::settle(make(), idle, live, shard));
                (shard, self.handle.runtime().spawn_on(shard, settle))
            })
            .collect();
        async move {
            let mut keepers = Vec::with_capacity(shards);
            for (shard, settling) in settling {
                // A keeper without instances holds nothing: one that is left over goes with its shard.
                keepers.push(settling.await.map_err(|_| SpawnError {
                    actor: A::NAME,
                    shard,
                    kind: SpawnErrorKind::NoShard { shards },
                })?);
            }
            let family = Arc::new(Family {
                keepers: keepers.into(),
                live,
            });
            Ok(Keyed { family })
        }
    }
}

impl<K: 'static, A: Actor> fmt::Debug for KeyedBuilder<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedBuilder")
            .field("actor", &A::NAME)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}
