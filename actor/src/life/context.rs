//! What a handler may do about life and death: its own actor's, and that of others.

use std::error::Error;
use std::sync::Arc;

use super::bonds::{Bonds, Parent};
use super::child::{Child, Factory};
use super::children::Strategy;
use super::control::{Control, erase};
use super::exit::{ActorId, ExitReason};
use super::restart::{Lineage, Policy};
use super::watch::{LinkOffer, Watcher};
use super::{LifeState, start_child};
use crate::actor::Actor;
use crate::address::{Addr, Direct};
use crate::context::Ctx;
use crate::mailbox::Mailbox;

impl<A: Actor> Ctx<A> {
    /// The identity of the actor, which it keeps when it is restarted.
    #[must_use]
    pub fn id(&self) -> ActorId {
        ActorId::new(self.resident().number())
    }

    /// How often the actor has been restarted.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.visit(Mailbox::incarnation).unwrap_or(0)
    }

    /// How far the life of the actor has come.
    #[must_use]
    pub fn state(&self) -> LifeState {
        self.visit(Mailbox::life_state)
            .unwrap_or(LifeState::Stopped)
    }

    /// Stops the actor once it has handled what it was sent up to now. Later sends are refused.
    ///
    /// A child with [`Restart::Always`](crate::Restart::Always) is started again then, and later sends wait for that.
    pub fn stop(&self) {
        self.visit(Mailbox::stop_self);
    }

    /// Stops the actor after this message; what else waits goes back to its senders as errors.
    ///
    /// A child with [`Restart::Always`](crate::Restart::Always) is started again then, and handles what waits.
    pub fn stop_now(&self) {
        self.visit(Mailbox::stop_self_now);
    }

    /// Ends the actor at once: an asynchronous handler goes no further than its next await, and no hook runs.
    ///
    /// It is not restarted.
    pub fn kill(&self) {
        self.visit(Mailbox::kill);
    }

    /// Declares an error that the actor cannot go on with. It ends when this handler has ended, as after a panic: without
    /// its stopping hook, and restarted if its supervisor says so.
    ///
    /// The error a handler returns is no such thing: it goes to the asker, or to `#[on(error)]`, and the actor lives.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use greenroom::ExitReason;
    ///
    /// struct Journal;
    ///
    /// #[actor]
    /// impl Journal {
    ///     pub fn append(&mut self, line: String, ctx: &mut Ctx<Self>) {
    ///         if line.len() > 80 {
    ///             ctx.fail("the journal is corrupt");
    ///         }
    ///     }
    /// }
    ///
    /// let system = System::start(1)?;
    /// system.block_on(async {
    ///     let journal = system.spawn_on(0, || Journal).await?;
    ///     let down = Addr::watch(journal);
    ///     journal.append("x".repeat(100)).await?;
    ///     let down = down.await;
    ///     assert!(matches!(down.reason, ExitReason::Failed(_)), "{down}");
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn fail(&self, error: impl Into<Box<dyn Error + Send + Sync>>) {
        let reason = ExitReason::Failed(Arc::from(error.into()));
        self.visit(|mailbox| mailbox.fail(reason));
    }

    /// Watches an actor: its one `Down` comes to the `#[on(down)]` hook, at once if it is gone.
    ///
    /// It begins when the other actor's shard hears of it, which is at once on this shard. Watching it again has no effect. The watch ends with this actor, and with each of its incarnations. To hear of an end
    /// elsewhere than in the hook, await [`Addr::watch`].
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use greenroom::Down;
    ///
    /// struct Worker;
    ///
    /// #[actor]
    /// impl Worker {
    ///     pub fn work(&self) {}
    /// }
    ///
    /// #[derive(Default)]
    /// struct Manager { gone: Vec<String>, asked: Vec<Reply<Vec<String>>> }
    ///
    /// #[actor]
    /// impl Manager {
    ///     pub fn hire(&mut self, worker: Addr<Worker>, ctx: &mut Ctx<Self>) { ctx.watch(worker); }
    ///     pub fn first_gone(&mut self, reply: Reply<Vec<String>>) {
    ///         if self.gone.is_empty() { self.asked.push(reply) } else { reply.send(self.gone.clone()) }
    ///     }
    ///     #[on(down)]
    ///     fn gone(&mut self, down: Down) {
    ///         self.gone.push(down.reason.to_string());
    ///         for reply in self.asked.drain(..) { reply.send(self.gone.clone()); }
    ///     }
    /// }
    ///
    /// let system = System::start(1)?;
    /// system.block_on(async {
    ///     let manager = system.spawn_on(0, Manager::default).await?;
    ///     let worker = system.spawn_on(0, || Worker).await?;
    ///     manager.hire(worker).await?;
    ///     Addr::kill(worker);
    ///     assert_eq!(manager.first_gone().await?, ["it was killed"]);
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn watch<B: Actor, P: Direct<Actor = B>>(&self, other: Addr<B, P>) {
        let is_new = self.visit(|mailbox| {
            let mut concerns = mailbox.bonds().concerns.borrow_mut();
            concerns.watch(erase(other.id()))
        });
        if is_new == Some(true) {
            let watcher = Watcher::actor(erase(self.resident()), other.gone());
            erase(other.id()).post(Control::Watch(watcher));
        }
    }

    /// Watches an actor no more: its `Down` does not come any more, not even if it is on its way.
    pub fn unwatch<B: Actor, P: Direct<Actor = B>>(&self, other: Addr<B, P>) {
        let id = Addr::actor_id(other);
        let was = self.bonds_if_any(|bonds| bonds.concerns.borrow_mut().unwatch(id));
        if was == Some(true) {
            erase(other.id()).post(Control::Unwatch(self.id()));
        }
    }

    /// Links this actor with another one: if one of them ends otherwise than by stopping, the other one fails with it.
    ///
    /// Its [`ExitReason`] is then [`ExitReason::Linked`]. It goes no further than the next await, and its supervisor decides
    /// about a restart as after any failure. The link ends with the incarnation of either. An actor that is gone already counts as one that did not stop.
    pub fn link<B: Actor, P: Direct<Actor = B>>(&self, other: Addr<B, P>) {
        if Addr::actor_id(other) == self.id() {
            return;
        }
        let is_new = self.visit(|mailbox| {
            let mut concerns = mailbox.bonds().concerns.borrow_mut();
            concerns.link(erase(other.id()))
        });
        if is_new == Some(true) {
            let offer = LinkOffer::new(erase(self.resident()), other.gone());
            erase(other.id()).post(Control::Link(offer));
        }
    }

    /// Takes a link back, on both sides.
    pub fn unlink<B: Actor, P: Direct<Actor = B>>(&self, other: Addr<B, P>) {
        let id = Addr::actor_id(other);
        let was = self.bonds_if_any(|bonds| bonds.concerns.borrow_mut().unlink(id));
        if was == Some(true)
            && let Some(down) = self.visit(|mailbox| mailbox.down(ExitReason::Stopped))
        {
            erase(other.id()).post(Control::Linked(down));
        }
    }

    /// Starts a child: an actor that ends at the latest with this one.
    ///
    /// The factory makes the actor where it is to live. What the child is like, [when it is restarted](Child::restart) and
    /// [where it lives](Child::on) above all, is said before it is awaited.
    ///
    /// # Errors
    /// The future resolves to a [`SpawnError`](crate::SpawnError) if the child does not start.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use greenroom::Restart;
    ///
    /// #[derive(Default)]
    /// struct Counter { n: u32 }
    ///
    /// #[actor]
    /// impl Counter {
    ///     pub fn add(&mut self, by: u32) -> u32 {
    ///         self.n = self.n.checked_add(by).expect("an overflow");
    ///         self.n
    ///     }
    /// }
    ///
    /// struct Parent;
    ///
    /// #[actor]
    /// impl Parent {
    ///     pub async fn child(&mut self, ctx: &mut Ctx<Self>) -> Result<Addr<Counter>, greenroom::SpawnError> {
    ///         ctx.spawn_child(Counter::default).restart(Restart::OnFailure).on(1).await
    ///     }
    /// }
    ///
    /// let system = System::start(2)?;
    /// system.block_on(async {
    ///     let parent = system.spawn_on(0, || Parent).await?;
    ///     let counter = parent.child().await?;
    ///     assert_eq!(counter.add(u32::MAX).await?, u32::MAX);
    ///     assert!(counter.add(1).await.unwrap_err().panic().is_some());
    ///     assert_eq!(counter.add(1).await?, 1);                       // the same address, a new state
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn spawn_child<C, F>(&self, make: F) -> Child<A, C, F>
    where
        C: Actor,
        F: Factory<C>,
    {
        Child::new(self.resident(), make)
    }

    /// Starts a child on this shard without waiting for it: its address is good at once, as that of
    /// [`spawn`](crate::spawn()).
    ///
    /// If its start hook fails, `#[on(child_exit)]` hears of it.
    pub fn adopt<C: Actor>(&self, child: C) -> Addr<C> {
        let addr = erase(self.resident());
        let place = self.visit(|mailbox| mailbox.bonds().children.reserve());
        let place = place.expect("the context of an actor that runs");
        let parent = Parent { addr, place };
        let lineage = Lineage::new(Policy::default(), None);
        let addr =
            start_child(child, None, parent, lineage, None).expect("an actor runs on its shard");
        self.bonds_if_any(|bonds| bonds.children.born(place, erase(addr.id())));
        addr
    }

    /// Which children are restarted when one of them fails. Default: the one that failed.
    pub fn set_strategy(&self, strategy: Strategy) {
        self.visit(|mailbox| mailbox.bonds().children.set_strategy(strategy));
    }

    /// The children that are alive, in the order of their start.
    #[must_use]
    pub fn children(&self) -> Vec<ActorId> {
        self.bonds_if_any(|bonds| bonds.children.ids())
            .unwrap_or_default()
    }

    fn visit<T>(&self, f: impl FnOnce(&Mailbox<A>) -> T) -> Option<T> {
        self.resident().visit(f)
    }

    fn bonds_if_any<T>(&self, f: impl FnOnce(&Bonds) -> T) -> Option<T> {
        self.visit(|mailbox| mailbox.try_bonds().map(f)).flatten()
    }
}
