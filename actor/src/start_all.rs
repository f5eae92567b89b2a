//! Starting an actor on every shard as one act: all of them, or none.
//!
//! Each start has a cradle, which both sides reach: the newborn on its shard, and whoever started it. Whichever comes second
//! knows that the other was there: a newborn that finds itself given up stops; who gives up stops those it finds born. So
//! nobody is left over, also when the future is dropped while some have started and some have not.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use futures_util::stream::{FuturesUnordered, StreamExt};
use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::ResidentId;

use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::error::SpawnError;
use crate::mailbox::Mailbox;
use crate::placement::Sharded;
use crate::system::{Handle, bear};

impl Handle {
    /// Starts one instance of an actor on every shard, as one act.
    ///
    /// If one does not start the others are stopped, and have ended before the error is returned.
    ///
    /// # Errors
    /// As [`Handle::spawn_on`], of the shard that failed first.
    ///
    /// # Cancel safety
    /// Dropping the future before it is done stops those that have started, and those that would start later.
    pub fn spawn_sharded<A, F>(
        &self,
        make: F,
    ) -> impl Future<Output = Result<Sharded<A>, SpawnError>> + Send + use<A, F>
    where
        A: Actor,
        F: Fn(ShardId) -> A + Clone + Send + 'static,
    {
        let cradles: Vec<_> = self.shards().map(|_| Arc::new(Cradle::new())).collect();
        let mut starting: FuturesUnordered<_> = self
            .shards()
            .zip(&cradles)
            .map(|(shard, cradle)| {
                let (make, cradle) = (make.clone(), cradle.clone());
                let starting = self.spawn_in(shard, move || {
                    bear(
                        move || make(shard),
                        move |mailbox| {
                            cradle.born(mailbox.id());
                            Ok(())
                        },
                    )
                });
                async move { (shard, starting.await) }
            })
            .collect();
        let mut cradles = Cradles(cradles);
        async move {
            let mut instances = Vec::with_capacity(starting.len());
            let mut failures = Vec::new();
            while let Some((shard, started)) = starting.next().await {
                match started {
                    Ok(addr) => instances.push((shard, addr.id())),
                    Err(error) => {
                        // A start hook that waits would keep the error from being told.
                        cradles.give_up();
                        failures.push((shard, error));
                    }
                }
            }
            if failures.is_empty() {
                cradles.0.clear();
                instances.sort_unstable_by_key(|(shard, _)| *shard);
                let addrs = instances.into_iter();
                let addrs = addrs.map(|(_, id)| Addr::from_port(Remote::new(id)));
                return Ok(Sharded::new(addrs.collect()));
            }
            for (_, id) in instances {
                Addr::stopped(Addr::<A>::from_port(Remote::new(id))).await;
            }
            // Those that were given up failed after the one that was not.
            Err(failures.swap_remove(0).1)
        }
    }
}

const EMPTY: u8 = 0;
const BORN: u8 = 1;
const GIVEN_UP: u8 = 2;

struct Cradle<A: Actor> {
    state: AtomicU8,
    /// Invariant: set before the state is `BORN`.
    newborn: OnceLock<ResidentId<Mailbox<A>>>,
}

impl<A: Actor> Cradle<A> {
    fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            newborn: OnceLock::new(),
        }
    }

    /// The newborn's side.
    fn born(&self, id: ResidentId<Mailbox<A>>) {
        let first = self.newborn.set(id);
        debug_assert!(first.is_ok(), "one is born in each cradle");
        // ORDERING: AcqRel; pairs with the swap in `give_up`. Of two swaps of one place the second sees the first, so one
        // side knows of both; the release makes the id visible to the other side.
        if self.state.swap(BORN, Ordering::AcqRel) == GIVEN_UP {
            Addr::stop(Addr::<A>::from_port(Remote::new(id)));
        }
    }

    /// The side of whoever started it.
    fn give_up(&self) {
        // ORDERING: AcqRel; pairs with the swap in `born`.
        if self.state.swap(GIVEN_UP, Ordering::AcqRel) == BORN
            && let Some(id) = self.newborn.get()
        {
            Addr::stop(Addr::<A>::from_port(Remote::new(*id)));
        }
    }
}

/// All cradles of an act that is not done; dropped before, it is undone.
struct Cradles<A: Actor>(Vec<Arc<Cradle<A>>>);

impl<A: Actor> Cradles<A> {
    fn give_up(&mut self) {
        for cradle in self.0.drain(..) {
            cradle.give_up();
        }
    }
}

impl<A: Actor> Drop for Cradles<A> {
    fn drop(&mut self) {
        self.give_up();
    }
}
