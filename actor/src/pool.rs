//! Pools: several actors that can do the same, and whose turn it is.
//!
//! The workers are instances of a [`Keyed`], by number, with one difference: worker `i` lives on shard `i` modulo the number of
//! shards, not where a hash says. So a worker that fails is replaced at its next message, and its mailbox's bound, order
//! and lines are those of every actor.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom_runtime::{FloatHandle, ShardId};

use crate::actor::Actor;
use crate::error::SpawnError;
use crate::keyed::{AddrByKey, Keyed};
use crate::placement;
use crate::system::Handle;

/// The most workers of a pool. Each has a row in its table from the start, made or not.
const SIZE_MAX: usize = 1 << 20;

/// A worker of a [`Pool`], called like an address.
pub type Worker<'a, A> = AddrByKey<'a, usize, usize, A>;

/// Workers on all shards, and several ways to choose one.
///
/// | call | goes to |
/// |---|---|
/// | [`round_robin`](Pool::round_robin) | one after the other |
/// | [`least_loaded`](Pool::least_loaded) | the one with the fewest asks of this pool under way |
/// | [`by_key`](Pool::by_key) | always the same one for equal keys |
/// | [`share`](Pool::share) | one on the first shard that has time |
///
/// Workers are made by their first message. One that has failed is replaced at the next message to it.
///
/// Cloning it is cheap, and it can be sent anywhere. It keeps nothing alive.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// struct Hasher;
///
/// #[actor]
/// impl Hasher {
///     pub fn hash(&self, text: String) -> usize { text.len() }
/// }
///
/// let system = System::start(2)?;
/// system.block_on(async {
///     let hashers = system.pool(4, |_number| Hasher).await?;
///     assert_eq!(hashers.round_robin().hash("one".into()).await?, 3);
///     assert_eq!(hashers.least_loaded().hash("three".into()).await?, 5);
///     assert_eq!(hashers.by_key("user 7").hash("four".into()).await?, 4);
///     let shared = hashers.share(async |worker| worker.hash("eleven".into()).await);
///     assert_eq!(shared.await??, 6);
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
pub struct Pool<A: Actor> {
    workers: Keyed<usize, A>,
    handle: Handle,
    places: Arc<[Place]>,
    /// Whose turn it is.
    next: Arc<AtomicUsize>,
}

struct Place {
    number: usize,
    home: ShardId,
    /// Asks under way that chose this worker for its load.
    load: AtomicUsize,
}

impl Handle {
    /// Makes a pool of so many workers, spread over all shards; see [`Pool`].
    ///
    /// # Errors
    /// The future resolves to a [`SpawnError`] if the system is shutting down.
    ///
    /// # Panics
    /// If there is to be no worker, or more than 1,048,576 of them.
    #[track_caller]
    pub fn pool<A, F>(
        &self,
        size: usize,
        make: F,
    ) -> impl Future<Output = Result<Pool<A>, SpawnError>> + Send + use<A, F>
    where
        A: Actor,
        F: Fn(usize) -> A + Clone + Send + Sync + 'static,
    {
        assert!(size > 0, "a pool of no workers: it needs one at least");
        assert!(
            size <= SIZE_MAX,
            "a pool of {size} workers: it takes {SIZE_MAX} at most; actors in any number are made by key, with `keyed`"
        );
        let handle = self.clone();
        let starting = self
            .keyed(move |number: &usize| make(*number))
            .never_idle()
            .start();
        let shards: Vec<_> = self.shards().collect();
        let places: Arc<[Place]> = (0..size)
            .zip(shards.iter().copied().cycle())
            .map(|(number, home)| Place {
                number,
                home,
                load: AtomicUsize::new(0),
            })
            .collect();
        async move {
            Ok(Pool {
                workers: starting.await?,
                handle,
                places,
                next: Arc::default(),
            })
        }
    }
}

impl<A: Actor> Pool<A> {
    /// The number of workers, made or not.
    #[must_use]
    pub fn size(&self) -> usize {
        self.places.len()
    }

    /// How many workers there are now.
    #[must_use]
    pub fn live(&self) -> usize {
        self.workers.live()
    }

    fn at<'a>(&self, place: &'a Place) -> Worker<'a, A> {
        self.workers.at_on(place.home, &place.number)
    }

    fn turn(&self) -> usize {
        // ORDERING: Relaxed; only that each caller gets another number matters.
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The next worker in turn.
    #[must_use]
    pub fn round_robin(&self) -> Worker<'_, A> {
        self.at(&self.places[self.turn() % self.places.len()])
    }

    /// The worker of a key: always the same one for equal keys.
    #[must_use]
    pub fn by_key<Q: Hash + ?Sized>(&self, key: &Q) -> Worker<'_, A> {
        let owner = placement::owner_of(placement::hash_of(key), self.places.len());
        self.at(&self.places[owner])
    }

    /// The worker with the fewest asks under way, of those that chose it this way; of equals the next in turn.
    ///
    /// The worker counts as chosen while the returned value lives: in `pool.least_loaded().work().await` until the answer is
    /// there. A told message counts until it is accepted.
    pub fn least_loaded(&self) -> Leased<'_, A> {
        let first = self.turn() % self.places.len();
        let (before, from) = self.places.split_at(first);
        let place = from.iter().chain(before).min_by_key(|place| {
            // ORDERING: Relaxed; an estimate that is off by what happens meanwhile.
            place.load.load(Ordering::Relaxed)
        });
        let place = place.expect("a pool has a worker");
        // ORDERING: Relaxed; as above.
        place.load.fetch_add(1, Ordering::Relaxed);
        Leased {
            worker: self.at(place),
            place,
        }
    }

    /// All workers, by number.
    pub fn each(&self) -> impl ExactSizeIterator<Item = Worker<'_, A>> {
        self.places.iter().map(|place| self.at(place))
    }

    /// Lets the first shard that has time choose one of its workers, and run `work` with it.
    ///
    /// The work waits on the [float lane](greenroom_runtime::spawn_anywhere) until a shard takes it up: one that is busy leaves
    /// it to its siblings. It need not be `Send` once it has begun. If that shard has no worker it is the next one in turn.
    ///
    /// # Errors
    /// The handle resolves to a [`JoinError`](greenroom_runtime::JoinError) if the work panicked, or the system shut down.
    pub fn share<F, R>(&self, work: F) -> FloatHandle<R>
    where
        F: AsyncFnOnce(Worker<'_, A>) -> R + Send + 'static,
        R: Send + 'static,
    {
        let pool = self.clone();
        self.handle
            .runtime()
            .spawn_anywhere(move || async move { work(pool.local()).await })
    }

    /// One of the calling shard's workers.
    fn local(&self) -> Worker<'_, A> {
        let shards = self.handle.shard_count();
        let here = greenroom_runtime::current_shard().map_or(0, ShardId::index);
        let mine = self.places.iter().skip(here).step_by(shards);
        match mine.len() {
            0 => self.round_robin(),
            count => {
                let place = mine.clone().nth(self.turn() % count);
                self.at(place.expect("less than their number"))
            }
        }
    }

    /// Stops all workers, and takes no more messages; the future is done when they have ended. See [`Keyed::stop`].
    pub fn stop(&self) -> impl Future<Output = ()> + Send + use<A> {
        self.workers.stop()
    }
}

impl<A: Actor> Clone for Pool<A> {
    fn clone(&self) -> Self {
        Self {
            workers: self.workers.clone(),
            handle: self.handle.clone(),
            places: self.places.clone(),
            next: self.next.clone(),
        }
    }
}

impl<A: Actor> fmt::Debug for Pool<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("actor", &A::NAME)
            .field("size", &self.size())
            .field("live", &self.live())
            .finish_non_exhaustive()
    }
}

/// A worker that was chosen for its load; it counts as loaded while this lives. Called like an address.
#[must_use = "the worker is called through this"]
pub struct Leased<'a, A: Actor> {
    worker: Worker<'a, A>,
    place: &'a Place,
}

impl<'a, A: Actor> Deref for Leased<'a, A> {
    type Target = Worker<'a, A>;

    fn deref(&self) -> &Self::Target {
        &self.worker
    }
}

impl<A: Actor> Drop for Leased<'_, A> {
    fn drop(&mut self) {
        // ORDERING: Relaxed; see `Pool::least_loaded`.
        self.place.load.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<A: Actor> fmt::Debug for Leased<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased")
            .field("actor", &A::NAME)
            .field("number", &self.place.number)
            .finish_non_exhaustive()
    }
}
