//! Owning an actor.

use std::fmt;
use std::ops::Deref;

use crate::actor::Actor;
use crate::address::Addr;

/// An address that stops its actor when it is dropped.
///
/// Addresses keep nothing alive and end nothing. This one ties the life of an actor to a value: a field of another struct,
/// a local of a task. It dereferences to its [`Addr`].
///
/// # Shard affinity
/// It may be dropped on any thread.
///
/// # Examples
/// ```
/// use greenroom::Owned;
/// use greenroom::prelude::*;
///
/// struct Cache;
///
/// #[actor]
/// impl Cache {
///     pub fn len(&self) -> usize { 0 }
/// }
///
/// let system = System::start(1)?;
/// system.block_on(async {
///     let cache = Owned::new(system.spawn_on(0, || Cache).await?);
///     let addr = *cache;
///     assert_eq!(cache.len().await?, 0);
///     drop(cache);
///     Addr::stopped(addr).await;
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
#[must_use = "the actor is stopped when this is dropped"]
pub struct Owned<A: Actor> {
    addr: Addr<A>,
    stops: Stops,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stops {
    Yes,
    No,
}

impl<A: Actor> Owned<A> {
    /// Takes the actor: from now on it lives no longer than this value.
    pub fn new(addr: Addr<A>) -> Self {
        Self {
            addr,
            stops: Stops::Yes,
        }
    }

    /// The address, which can be copied.
    #[must_use]
    pub fn addr(this: &Self) -> Addr<A> {
        this.addr
    }

    /// Gives the actor up: it lives on.
    #[must_use]
    pub fn release(mut this: Self) -> Addr<A> {
        this.stops = Stops::No;
        this.addr
    }
}

impl<A: Actor> From<Addr<A>> for Owned<A> {
    fn from(addr: Addr<A>) -> Self {
        Self::new(addr)
    }
}

impl<A: Actor> Deref for Owned<A> {
    type Target = Addr<A>;

    fn deref(&self) -> &Addr<A> {
        &self.addr
    }
}

impl<A: Actor> Drop for Owned<A> {
    fn drop(&mut self) {
        if self.stops == Stops::Yes {
            Addr::stop(self.addr);
        }
    }
}

impl<A: Actor> fmt::Debug for Owned<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owned").field(&self.addr).finish()
    }
}
