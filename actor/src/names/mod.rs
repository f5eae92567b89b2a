//! Names of actors: held while the actor lives, found by others.
//!
//! There are two scopes with the same rules. A *system-wide* name is found from every thread; the [`SystemShelf`] is
//! a set of maps behind mutexes. A *shard's* name is found on that shard alone, and costs no synchronisation.
//!
//! * [`book`]: which names there are, and who waits for one.
//! * [`shelf`]: where books are kept; claims, registration and lookup.
//! * [`error`]: why a name was not given or not found.
//!
//! # Who holds a name, and for how long
//! A name is claimed before its actor's factory is called, so of two spawns with one name one is refused and has made
//! nothing. The claim is a value with a drop. It goes into the belongings of the actor's mailbox as soon as there is one;
//! whatever ends the actor, a start hook that refuses included, frees the name. It is free before anybody hears of the end.

mod book;
mod error;
mod shelf;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::{ShardId, time};

pub use self::error::{LookupError, Named, RegisterError};
use self::error::{LookupErrorKind, RegisterErrorKind};
pub(crate) use self::shelf::name_of;
use self::shelf::{
    Awaited, Claim, ShardShelf, SystemShelf, lookup, not_found, register, unregister,
};
use crate::actor::Actor;
use crate::address::{Addr, Here, Local, Remote};
use crate::context::Ctx;
use crate::error::{SpawnError, SpawnErrorKind};
use crate::life;
use crate::system::{Handle, bear};

/// The names of a system: from [`Handle::names`], good on every thread.
///
/// A name belongs to its actor until that ends, in whatever way, or gives it up. It can be looked up as soon as the
/// actor exists; what is sent before its start hook has run waits, as with every address.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// #[derive(Default)]
/// struct Counter { n: u64 }
///
/// #[actor]
/// impl Counter {
///     pub fn add(&mut self, by: u64) -> u64 { self.n += by; self.n }
/// }
///
/// let system = System::start(2)?;
/// system.block_on(async {
///     system.names().spawn_on("visits", 1, Counter::default).await?;
///     let visits = system.names().lookup::<Counter>("visits")?;
///     assert_eq!(visits.add(1).await?, 1);
///
///     let second = system.names().spawn_on("visits", 0, Counter::default).await;
///     assert!(second.unwrap_err().is_name_taken());
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
#[derive(Clone)]
pub struct Names {
    handle: Handle,
    shelf: Arc<SystemShelf>,
}

impl Handle {
    /// The names of this system.
    #[must_use]
    pub fn names(&self) -> Names {
        Names {
            handle: self.clone(),
            shelf: self.runtime().extension(SystemShelf::default),
        }
    }
}

impl Names {
    /// Starts an actor under a name, and waits until its start hook has run; see [`Handle::spawn_on`].
    ///
    /// The name is taken before the factory is called: of several spawns with one name exactly one makes an actor.
    ///
    /// # Errors
    /// As [`Handle::spawn_on`]; and if the name is taken, with its holder, see [`SpawnError::is_name_taken`]. An actor that
    /// does not start leaves its name free.
    ///
    /// # Cancel safety
    /// Dropping the future stops the actor, also while its start hook runs. One that was not made yet never is.
    pub fn spawn_on<A, S, F>(
        &self,
        name: &str,
        shard: S,
        make: F,
    ) -> impl Future<Output = Result<Addr<A>, SpawnError>> + Send + use<A, S, F>
    where
        A: Actor,
        S: Into<ShardId>,
        F: FnOnce() -> A + Send + 'static,
    {
        let (shelf, name, shard) = (self.shelf.clone(), Arc::<str>::from(name), shard.into());
        self.handle.spawn_in(shard, move || async move {
            let claim = Claim::take::<A>(&shelf, name, shard).map_err(SpawnErrorKind::Name)?;
            bear(make, |mailbox| {
                claim.give_to(mailbox).map_err(SpawnErrorKind::Name)
            })
            .await
        })
    }

    /// The actor of a name.
    ///
    /// # Errors
    /// [`LookupError`], if no actor has the name, or one of another type.
    pub fn lookup<A: Actor>(&self, name: &str) -> Result<Addr<A>, LookupError> {
        lookup(&self.shelf, name).map(|id| Addr::from_port(Remote::new(id)))
    }

    /// The actor of a name, as soon as there is one.
    ///
    /// # Errors
    /// The future resolves to a [`LookupError`] if an actor of another type has the name, or none got it within the limit.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub fn lookup_within<A: Actor>(
        &self,
        name: &str,
        limit: Duration,
    ) -> impl Future<Output = Result<Addr<A>, LookupError>> + Send + use<A> {
        let (name, runtime) = (Arc::<str>::from(name), self.handle.runtime().clone());
        let mut awaited = Awaited::new(self.shelf.clone(), name.clone());
        let found = async move {
            let mut limit_passed = None;
            std::future::poll_fn(move |cx| {
                let looked = awaited.poll_lookup::<A>(cx);
                if looked.is_ready() {
                    return looked;
                }
                // A timer of any shard, so that the future may be polled on every thread.
                let timer = limit_passed.get_or_insert_with(|| {
                    let shard = greenroom_runtime::current_shard().unwrap_or(0.into());
                    Timer(runtime.spawn_on(shard, move || time::sleep(limit)))
                });
                std::pin::Pin::new(&mut timer.0).poll(cx).map(|_| {
                    Err(not_found::<A>(
                        name.clone(),
                        LookupErrorKind::Elapsed(limit),
                    ))
                })
            })
            .await
        };
        async move { found.await.map(|id| Addr::from_port(Remote::new(id))) }
    }

    /// Gives an actor a name, besides those it has.
    ///
    /// An actor that is to name itself does it with [`Ctx::register`], at once. An actor that has the name keeps it.
    ///
    /// # Errors
    /// The future resolves to a [`RegisterError`] if another actor has the name, with its holder, or if this actor has ended.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the actor may have the name or not.
    pub fn register<A: Actor>(
        &self,
        name: &str,
        addr: Addr<A>,
    ) -> impl Future<Output = Result<(), RegisterError>> + Send + use<A> {
        let (shelf, name, id) = (self.shelf.clone(), Arc::<str>::from(name), addr.id());
        async move {
            let (answer, outcome) = oneshot::channel();
            let wanted = name.clone();
            let job = move || {
                let shard = greenroom_runtime::current_shard();
                let registered = shard
                    .and_then(|shard| id.visit(|mailbox| register(&shelf, wanted, mailbox, shard)));
                if let Some(registered) = registered {
                    // Whoever asked may be gone; the actor has the name all the same.
                    drop(answer.send(registered));
                }
            };
            drop(id.run_there(Box::new(job)));
            outcome.await.unwrap_or(Err(RegisterError {
                name,
                actor: A::NAME,
                kind: RegisterErrorKind::Ended,
            }))
        }
    }

    /// All names that are taken, in their order.
    ///
    /// They may change while this looks: it is not one moment in time.
    #[must_use]
    pub fn list(&self) -> Vec<Named> {
        let mut all = Vec::new();
        self.shelf.each(|book| all.extend(book.list()));
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

/// A limit that runs on some shard; it goes when nobody waits for it any more.
struct Timer(greenroom_runtime::RemoteJoinHandle<()>);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The names of one shard: found by its own actors and tasks only, and free of locks.
///
/// # Examples
/// ```
/// use greenroom::ShardNames;
/// use greenroom::prelude::*;
///
/// #[derive(Default)]
/// struct Cache { entries: u64 }
///
/// #[actor]
/// impl Cache {
///     pub fn put(&mut self) -> u64 { self.entries += 1; self.entries }
/// }
///
/// let system = System::start(2)?;
/// for shard in 0..2 {
///     // The same name on each shard, for another actor.
///     let entries = system.run_on(shard, || async {
///         ShardNames::current().spawn("cache", Cache::default())?;
///         let cache = ShardNames::current().lookup::<Cache>("cache")?;
///         Ok::<_, greenroom::Error>(cache.put().await?)
///     });
///     assert_eq!(entries?, 1);
/// }
/// # Ok::<(), greenroom::Error>(())
/// ```
#[derive(Clone)]
pub struct ShardNames {
    shelf: Rc<ShardShelf>,
    shard: ShardId,
}

impl ShardNames {
    /// The names of the calling shard.
    ///
    /// # Panics
    /// If the calling thread is no shard.
    #[must_use]
    #[track_caller]
    pub fn current() -> Self {
        let Some(shard) = greenroom_runtime::current_shard() else {
            panic!(
                "`ShardNames::current` was called on a thread that is no shard: use `Handle::names`"
            )
        };
        Self {
            shelf: greenroom_runtime::extension(ShardShelf::default),
            shard,
        }
    }

    /// Starts an actor on this shard under a name; see [`crate::spawn`].
    ///
    /// # Errors
    /// [`RegisterError`] if the name is taken; the actor is dropped, and has not started.
    pub fn spawn<A: Actor>(&self, name: &str, actor: A) -> Result<Addr<A>, RegisterError> {
        let claim = Claim::take::<A>(&self.shelf, Arc::<str>::from(name), self.shard)?;
        let addr = life::start(actor, None).expect("names of a shard stay on it");
        addr.id()
            .visit(|mailbox| claim.give_to(mailbox))
            .expect("its task was not polled yet")?;
        Ok(addr)
    }

    /// The actor of a name.
    ///
    /// # Errors
    /// [`LookupError`], if no actor of this shard has the name here, or one of another type.
    pub fn lookup<A: Actor>(&self, name: &str) -> Result<Local<A>, LookupError> {
        lookup(&self.shelf, name).map(|id| Addr::from_port(Here::new(id)))
    }

    /// The actor of a name, as soon as there is one.
    ///
    /// # Errors
    /// [`LookupError`] if an actor of another type has the name, or none got it within the limit.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn lookup_within<A: Actor>(
        &self,
        name: &str,
        limit: Duration,
    ) -> Result<Local<A>, LookupError> {
        let name = Arc::<str>::from(name);
        let mut awaited = Awaited::new(self.shelf.clone(), name.clone());
        let found = std::future::poll_fn(|cx| awaited.poll_lookup::<A>(cx));
        match time::timeout(limit, found).await {
            Ok(found) => found.map(|id| Addr::from_port(Here::new(id))),
            Err(_) => Err(not_found::<A>(name, LookupErrorKind::Elapsed(limit))),
        }
    }

    /// Gives an actor of this shard a name, besides those it has.
    ///
    /// # Errors
    /// [`RegisterError`] if another actor has the name, or if this actor has ended.
    pub fn register<A: Actor>(&self, name: &str, addr: Local<A>) -> Result<(), RegisterError> {
        let name = Arc::<str>::from(name);
        let wanted = name.clone();
        addr.id()
            .visit(|mailbox| register(&self.shelf, wanted, mailbox, self.shard))
            .unwrap_or(Err(RegisterError {
                name,
                actor: A::NAME,
                kind: RegisterErrorKind::Ended,
            }))
    }

    /// Takes a name from an actor of this shard; false if it does not hold it.
    pub fn unregister<A: Actor>(&self, name: &str, addr: Local<A>) -> bool {
        addr.id()
            .visit(|mailbox| unregister(&self.shelf, name, mailbox))
            .unwrap_or(false)
    }

    /// All names that are taken on this shard, in their order.
    #[must_use]
    pub fn list(&self) -> Vec<Named> {
        self.shelf.read(|book| book.list().collect())
    }
}

impl fmt::Debug for ShardNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardNames")
            .field("shard", &self.shard)
            .finish_non_exhaustive()
    }
}

impl<A: Actor> Ctx<A> {
    /// Gives the actor a system-wide name, besides those it has; see [`Handle::names`].
    ///
    /// # Errors
    /// [`RegisterError`] if another actor has the name, with its holder.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    ///
    /// struct Clock;
    ///
    /// #[actor]
    /// impl Clock {
    ///     #[on(started)]
    ///     fn started(&mut self, ctx: &mut Ctx<Self>) -> Result<(), greenroom::RegisterError> {
    ///         ctx.register("clock")
    ///     }
    ///     pub fn hand_over(&mut self, ctx: &mut Ctx<Self>) -> bool { ctx.unregister("clock") }
    /// }
    ///
    /// let system = System::start(1)?;
    /// system.block_on(async {
    ///     let clock = system.spawn_on(0, || Clock).await?;
    ///     assert_eq!(system.names().lookup::<Clock>("clock")?, clock);
    ///     assert!(clock.hand_over().await?);
    ///     assert!(system.names().lookup::<Clock>("clock").unwrap_err().is_not_found());
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn register(&self, name: &str) -> Result<(), RegisterError> {
        let (name, shelf) = (Arc::<str>::from(name), self.system().names().shelf);
        let wanted = name.clone();
        let registered = self
            .addr()
            .id()
            .visit(|mailbox| register(&shelf, wanted, mailbox, self.shard()));
        registered.unwrap_or(Err(RegisterError {
            name,
            actor: A::NAME,
            kind: RegisterErrorKind::Ended,
        }))
    }

    /// Gives a system-wide name up; false if this actor does not hold it.
    pub fn unregister(&self, name: &str) -> bool {
        let shelf = self.system().names().shelf;
        let given_up = self
            .addr()
            .id()
            .visit(|mailbox| unregister(&shelf, name, mailbox));
        given_up.unwrap_or(false)
    }
}
