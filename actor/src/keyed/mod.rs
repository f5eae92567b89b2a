//! Virtual actors: one for each key, started by its first message and gone when it is idle.
//!
//! Every shard has a [`Keeper`], which knows the instances of the keys that belong there. A call goes to the keeper of its
//! key's shard, which passes the message to the mailbox of the instance, or of a new one.
//!
//! * [`builder`]: how instances are made, and for how long they may be idle.
//! * [`way`]: the way of a call to the instance of a key.
//! * [`keeper`]: which instances there are on a shard.
//! * [`idle`]: when an instance goes.
//! * [`outside`]: messages of threads that are no shards.
//!
//! # Never two, never lost
//! A mailbox is made at once, also when its actor cannot be made yet: because the factory takes time, or because the last
//! instance of the key has not ended. So there is always a mailbox that takes the next message, and order is the order of
//! that mailbox. An instance that stops, for whatever reason, takes no more messages; the next message to its key makes
//! a *successor*, whose factory waits until the state of the predecessor was dropped.

mod builder;
mod idle;
mod keeper;
mod outside;
mod way;

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_channel::oneshot;
use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::ResidentId;

pub use self::builder::KeyedBuilder;
use self::keeper::{Keeper, Parcel};
pub use self::way::{AddrByKey, ByKey};
use crate::actor::Actor;
use crate::address::Addr;
use crate::context::Ctx;
use crate::placement::{self, hash_of};

/// Actors by key: each is started by its first message, on the shard of its key, and ends when it is idle.
///
/// `keyed.at(&key)` is called like an address. It stands for whatever instance the key has: one that runs, one that is
/// just being made, or one that is made because of the call. There are never two of one key at a time, and messages wait
/// while an instance starts or ends, in their order. An instance that panics, is killed or stops itself is followed by
/// another one at the next message.
///
/// Cloning it is cheap, and it can be sent anywhere. It keeps nothing alive: the instances are stopped by [`Keyed::stop`], or
/// with the system.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// struct Account { owner: String, balance: u64 }
///
/// #[actor]
/// impl Account {
///     pub fn deposit(&mut self, amount: u64) -> u64 { self.balance += amount; self.balance }
///     pub fn owner(&self) -> String { self.owner.clone() }
/// }
///
/// let system = System::start(2)?;
/// system.block_on(async {
///     let accounts = system
///         .keyed(|owner: &String| Account { owner: owner.clone(), balance: 0 })
///         .start()
///         .await?;
///     assert_eq!(accounts.at("ada").deposit(5).await?, 5);
///     assert_eq!(accounts.at("ada").deposit(5).await?, 10);
///     assert_eq!(accounts.at("grace").owner().await?, "grace");
///     assert_eq!(accounts.live(), 2);
///     accounts.stop().await;
///     assert_eq!(accounts.live(), 0);
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
pub struct Keyed<K: 'static, A: Actor> {
    family: Arc<Family<K, A>>,
}

/// What handles and keepers share.
pub(crate) struct Family<K: 'static, A: Actor> {
    /// In the order of their shards.
    keepers: Box<[ResidentId<Keeper<K, A>>]>,
    live: Arc<Live>,
}

/// How many instances there are on each shard. Each is written by its shard alone.
pub(crate) struct Live(Box<[AtomicUsize]>);

impl Live {
    fn new(shards: usize) -> Self {
        Self((0..shards).map(|_| AtomicUsize::new(0)).collect())
    }

    fn set(&self, shard: ShardId, count: usize) {
        // ORDERING: Relaxed; a number that nothing else is read by.
        self.0[shard.index()].store(count, Ordering::Relaxed);
    }

    fn sum(&self) -> usize {
        // ORDERING: Relaxed; as in `set`.
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        counts.sum()
    }
}

impl<K, A> Keyed<K, A>
where
    K: Hash + Eq + Send + 'static,
    A: Actor,
{
    /// What is called like an address of the key's instance.
    ///
    /// It borrows the key. The key is copied, with [`ToOwned`], when a message goes to another shard or makes a new instance,
    /// and not otherwise; a key that is no `Clone` is wrapped in an `Arc`.
    #[must_use]
    pub fn at<'a, Q>(&'a self, key: &'a Q) -> AddrByKey<'a, K, Q, A>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = hash_of(key);
        let home = self.shard_at(hash);
        Addr::from_port(ByKey::new(self.family.keepers[home.index()], key, hash))
    }

    /// As [`Keyed::at`], for keys whose shard is decided in another way: always in the same one.
    pub(crate) fn at_on<'a>(&self, home: ShardId, key: &'a K) -> AddrByKey<'a, K, K, A>
    where
        K: Clone,
    {
        Addr::from_port(ByKey::new(
            self.family.keepers[home.index()],
            key,
            hash_of(key),
        ))
    }

    /// The shard on which the key's instance lives: always the same one in every run with as many shards.
    #[must_use]
    pub fn shard_of<Q>(&self, key: &Q) -> ShardId
    where
        K: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.shard_at(hash_of(key))
    }

    fn shard_at(&self, hash: u64) -> ShardId {
        placement::shard_at(hash, self.family.keepers.len())
    }

    /// How many instances there are: those that start, run, or have not ended yet.
    #[must_use]
    pub fn live(&self) -> usize {
        self.family.live.sum()
    }

    /// Stops all instances, as [`Addr::stop`] does, and takes no more messages; the future is done when they have ended.
    ///
    /// The stop is sent by this call, awaited or not. What its caller sent before is handled.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + use<K, A> {
        let stopping: Vec<_> = self
            .family
            .keepers
            .iter()
            .map(|keeper| {
                let (ended, wait) = oneshot::channel();
                // A keeper that is gone drops the parcel, and with it the sender.
                drop(keeper.post(Parcel::Stop(ended)));
                wait
            })
            .collect();
        async move {
            for stopping in stopping {
                // Nothing is ever sent: the end is the drop of the other side.
                let _ended: Result<(), oneshot::Canceled> = stopping.await;
            }
        }
    }
}

impl<K: 'static, A: Actor> Clone for Keyed<K, A> {
    fn clone(&self) -> Self {
        Self {
            family: self.family.clone(),
        }
    }
}

impl<K: 'static, A: Actor> fmt::Debug for Keyed<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("actor", &A::NAME)
            .field("live", &self.family.live.sum())
            .finish_non_exhaustive()
    }
}

impl<A: Actor> Ctx<A> {
    /// Ends this instance of a [`Keyed`] once it has handled what it was sent up to now.
    ///
    /// The next message to its key makes a new one, after this one's stopping hook has run and its state was dropped. An actor
    /// that is no instance of a `Keyed` just stops.
    pub fn passivate(&self) {
        self.stop();
    }
}
