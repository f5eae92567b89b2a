//! The way of a message to the instance that owns its key.

use std::fmt;

use crate::actor::Actor;
use crate::address::{Addr, FromPort, Remote, sealed};
use crate::call::{Call, Method, ReplyMode};
use crate::placement::{self, Sharded};
use crate::way::{Suits, Way};

impl<A: Actor> Sharded<A> {
    /// What is called like an address, and sends each message to the instance that owns its key.
    ///
    /// The key is the argument of the parameter marked `#[key]`, after any conversion. The instance is that of
    /// [`Sharded::by_key`] for an equal key. The call is one to that instance from then on: asked, told, with a limit. A
    /// message without a key cannot be called so.
    ///
    /// # Examples
    /// ```
    /// use std::collections::HashMap;
    ///
    /// use greenroom::prelude::*;
    ///
    /// #[derive(Default)]
    /// struct Cache { entries: HashMap<String, u64> }
    ///
    /// #[actor]
    /// impl Cache {
    ///     pub fn put(&mut self, #[key] name: String, value: u64) { self.entries.insert(name, value); }
    ///     pub fn get(&self, #[key] #[into] name: String) -> Option<u64> { self.entries.get(&name).copied() }
    ///     pub fn len(&self) -> usize { self.entries.len() }
    /// }
    ///
    /// let system = System::start(2)?;
    /// system.block_on(async {
    ///     let cache = system.spawn_sharded(|_shard| Cache::default()).await?;
    ///     cache.route().put("a page".to_owned(), 7).tell().await?;
    ///     assert_eq!(cache.route().get("a page").await?, Some(7));
    ///     assert_eq!(cache.by_key("a page").get("a page").await?, Some(7));
    ///     assert_eq!(cache.map_reduce(|part| part.len(), 0, |all, part| all + part).await?, 1);
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    #[inline]
    #[must_use = "name the message: `sharded.route().method(..)`"]
    pub fn route(&self) -> A::Client<Route<'_, A>>
    where
        A: HasKeys,
    {
        A::Client::from_port(Route {
            instances: self.instances(),
        })
    }
}

/// The way of [`Sharded::route`]: to the instance that owns the key in the message.
pub struct Route<'a, A: Actor> {
    instances: &'a [Addr<A>],
}

impl<A: Actor> Clone for Route<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Actor> Copy for Route<'_, A> {}

impl<A: Actor> fmt::Debug for Route<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("actor", &A::NAME)
            .field("instances", &self.instances.len())
            .finish()
    }
}

impl<A: Actor> sealed::Sealed for Route<'_, A> {}

impl<A: Actor, Args: 'static> Suits<Route<'_, A>> for Args {}

impl<A: Actor> Way for Route<'_, A> {
    type Actor = A;
    type Env = A::Msg;
    type Call<M: ReplyMode, Args, B> = Call<Remote<A>, M, Args, B>;

    #[inline]
    fn call<M: ReplyMode, Args: Suits<Self>, B: Method<Self, M, Args>>(
        self,
        args: Args,
    ) -> Call<Remote<A>, M, Args, B> {
        let owner = placement::shard_at(B::key_hash(&args), self.instances.len());
        Call::new(Remote::new(self.instances[owner.index()].id()), args)
    }
}

/// An actor with a message that has a `#[key]`. Implemented by `#[actor]`, never by hand.
#[diagnostic::on_unimplemented(
    message = "no message of `{Self}` has a `#[key]` parameter",
    label = "nothing says which instance a message is for",
    note = "mark the parameter that does, as in `pub fn get(&self, #[key] name: String)`, or say which instance with \
            `.by_key(&key)`, `.on(shard)` or `.local()`"
)]
pub trait HasKeys: Actor {}

/// A way to one actor, whatever the message is.
#[diagnostic::on_unimplemented(
    message = "this message has no `#[key]` parameter",
    label = "nothing says which instance it is for",
    note = "say which with `.on(shard)`, `.local()` or `.by_key(&key)` instead of `.route()`, or ask all of them with \
            `.map(..)`"
)]
pub trait Aimed: sealed::Sealed {}
