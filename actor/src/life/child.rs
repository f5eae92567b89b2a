//! Starting a child.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::ResidentId;

use super::bonds::Parent;
use super::control::{AnyAddr, erase};
use super::newborn::Newborn;
use super::restart::{Factory as Renewed, Lineage, Policy, Restart};
use super::start_child;
use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::error::{SpawnError, SpawnErrorKind};
use crate::fate;
use crate::mailbox::Mailbox;
use crate::system::Handle;

/// Makes a child: every closure and function that returns one does.
///
/// One that can be called again makes each incarnation of a child that is restarted, see [`Child::restart`]. It is a trait
/// of its own because a closure that is written where `FnOnce` is asked for is that and nothing more to the compiler.
pub trait Factory<C>: 'static {
    /// Makes the child, on its shard.
    fn make(self) -> C;
}

impl<C, F: FnOnce() -> C + 'static> Factory<C> for F {
    fn make(self) -> C {
        self()
    }
}

/// A child that is about to be started: await it, after saying what it is to be like.
///
/// Made by [`Ctx::spawn_child`](crate::Ctx::spawn_child). It starts when it is awaited, on the shard of its parent if nothing else is
/// said, and is never restarted if nothing else is said. A child ends at the latest with its parent.
#[must_use = "a child starts when this is awaited"]
pub struct Child<P: Actor, C: Actor, F> {
    parent: ResidentId<Mailbox<P>>,
    plan: Plan<C, F>,
    elsewhere: Option<Elsewhere<C, F>>,
}

/// What a child is made of, on its way to its shard.
struct Plan<C: Actor, F> {
    make: F,
    /// Turns the factory into one that can be called again.
    renew: Option<fn(F) -> Renewed<C>>,
    policy: Policy,
    grace: Option<Duration>,
}

/// How a child is started on another shard: known where the factory is known to be `Send`.
struct Elsewhere<C: Actor, F> {
    shard: ShardId,
    start: Start<C, F>,
}

type Start<C, F> = fn(Plan<C, F>, Box<dyn AnyAddr>, u64, ShardId) -> Starting<C>;

type Starting<C> = Pin<Box<dyn Future<Output = Result<Newborn<C>, SpawnErrorKind>>>>;

impl<P: Actor, C: Actor, F: Factory<C>> Child<P, C, F> {
    pub(super) fn new(parent: ResidentId<Mailbox<P>>, make: F) -> Self {
        Self {
            parent,
            plan: Plan {
                make,
                renew: None,
                policy: Policy::default(),
                grace: None,
            },
            elsewhere: None,
        }
    }

    /// When to start it again, with the factory, which then must be one that can be called again.
    ///
    /// It keeps its address and its mailbox: the message it failed at is gone, the others wait for it.
    pub fn restart(mut self, restart: Restart) -> Self
    where
        F: FnMut() -> C,
    {
        self.plan.policy.restart = restart;
        self.plan.renew = Some(|make| Box::new(make));
        self
    }

    /// Where it is to live. The factory crosses to the shard.
    pub fn on(mut self, shard: impl Into<ShardId>) -> Self
    where
        F: Send,
    {
        let shard = shard.into();
        let start = start_elsewhere;
        self.elsewhere = Some(Elsewhere { shard, start });
        self
    }

    /// How often it is restarted within some time before its parent fails with it. Default: 3 times in 5 seconds.
    pub fn intensity(mut self, restarts: u32, within: Duration) -> Self {
        self.plan.policy.restarts_max = restarts;
        self.plan.policy.within = within;
        self
    }

    /// How long to wait before a restart: `first`, then twice as long each time, at most `longest`, give or take 10 %.
    /// Default: 10 milliseconds, and 1 second.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.plan.policy.backoff = first;
        self.plan.policy.backoff_max = longest;
        self
    }

    /// How long it must have lived for the waits to begin anew. Default: 10 seconds.
    pub fn healthy_after(mut self, time: Duration) -> Self {
        self.plan.policy.healthy_after = time;
        self
    }

    /// How long it may take to stop before it is killed. Default: what the system says.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.plan.grace = Some(grace);
        self
    }

    async fn start(self) -> Result<Addr<C>, SpawnError> {
        let Self {
            parent,
            plan,
            elsewhere,
        } = self;
        let here = greenroom_runtime::current_shard();
        let shard = elsewhere.as_ref().map(|elsewhere| elsewhere.shard).or(here);
        let shard = shard.unwrap_or_else(|| ShardId::from(0));
        let fail = |kind| SpawnError {
            actor: C::NAME,
            shard,
            kind,
        };
        let Some(place) = parent.visit(|parent| parent.bonds().children.reserve()) else {
            return Err(fail(SpawnErrorKind::NoParent));
        };
        let reserved = Reserved { parent, place };
        let born = match elsewhere {
            None => {
                plan.bear(erase(parent), place, |child| reserved.fill(child))
                    .await
            }
            Some(elsewhere) => (elsewhere.start)(plan, erase(parent), place, elsewhere.shard).await,
        };
        let id = born.map_err(fail)?.grown_up();
        reserved.fill(id);
        Ok(Addr::from_port(Remote::new(id)))
    }
}

impl<P: Actor, C: Actor, F: Factory<C>> IntoFuture for Child<P, C, F> {
    type Output = Result<Addr<C>, SpawnError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output>>>;

    /// # Errors
    /// The future resolves to a [`SpawnError`] if the factory or the start hook panics, the hook refuses, the child is
    /// killed before the hook is done, its parent has ended, or the shard does not exist or is shutting down.
    ///
    /// # Cancel safety
    /// Dropping the future stops a child that has not finished its start.
    ///
    /// # Deadlocks
    /// A handler that awaits this keeps its actor from other messages until the start hook has run. So that hook must not ask the parent:
    /// it would wait until its limit is over. What it needs to know the factory can give it.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

impl<P: Actor, C: Actor, F> fmt::Debug for Child<P, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("actor", &C::NAME)
            .field("policy", &self.plan.policy)
            .finish_non_exhaustive()
    }
}

impl<C: Actor, F: Factory<C>> Plan<C, F> {
    /// Makes the child on the calling shard, and waits until its start hook has run. `settled` sees it before that.
    async fn bear(
        self,
        parent: Box<dyn AnyAddr>,
        place: u64,
        settled: impl FnOnce(ResidentId<Mailbox<C>>),
    ) -> Result<Newborn<C>, SpawnErrorKind> {
        let Self {
            make,
            renew,
            policy,
            grace,
        } = self;
        let made = catch_unwind(AssertUnwindSafe(|| match renew {
            None => (make.make(), None),
            Some(renew) => {
                let mut factory = renew(make);
                (factory(), Some(factory))
            }
        }));
        let (child, factory) =
            made.map_err(|payload| SpawnErrorKind::Panicked(fate::report(payload)))?;
        let lineage = Lineage::new(policy, factory);
        let parent = Parent {
            addr: parent,
            place,
        };
        let (started, outcome) = oneshot::channel();
        let addr = start_child(child, Some(started), parent, lineage, grace)
            .expect("this runs on a shard");
        settled(addr.id());
        Newborn::new(addr.id()).started(outcome).await
    }
}

/// Starts a child on another shard.
fn start_elsewhere<C: Actor, F: Factory<C> + Send>(
    plan: Plan<C, F>,
    parent: Box<dyn AnyAddr>,
    place: u64,
    shard: ShardId,
) -> Starting<C> {
    let system = Handle::current().expect("a parent runs on a shard");
    let shards = system.shard_count();
    let born = system
        .runtime()
        .spawn_on(shard, move || plan.bear(parent, place, |_| ()));
    let born = super::Starting::new(born);
    Box::pin(async move {
        born.await
            .unwrap_or(Err(SpawnErrorKind::NoShard { shards }))
    })
}

/// The place of a child that is not born yet; given up if it never is.
struct Reserved<P: Actor> {
    parent: ResidentId<Mailbox<P>>,
    place: u64,
}

impl<P: Actor> Reserved<P> {
    fn fill<C: Actor>(&self, child: ResidentId<Mailbox<C>>) {
        self.parent.visit(|parent| {
            parent.bonds().children.born(self.place, erase(child));
        });
    }
}

impl<P: Actor> Drop for Reserved<P> {
    fn drop(&mut self) {
        self.parent
            .visit(|parent| parent.bonds().children.give_up(self.place));
    }
}
