//! What a mailbox knows of the life of its actor.

use std::sync::Arc;
use std::time::Duration;

use greenroom_runtime::mesh::Fifo;

use super::reading::now_ms;
use super::{Activity, Letter, Mailbox, Phase};
use crate::actor::Actor;
use crate::life::{
    ActorId, AnyAddr, Bonds, Down, Event, ExitReason, Gone, LifeState, Overdue, Parent, Restart,
    Stage, Summons, Summonses, contain,
};
use crate::registry::Registry;

impl<A: Actor> Mailbox<A> {
    pub(crate) fn summonses(&self) -> &Summonses {
        &self.summonses
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage.get()
    }

    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.set(stage);
    }

    /// Its key in the registry.
    pub(crate) fn set_key(&self, key: usize) {
        self.key
            .set(u32::try_from(key).expect("fewer actors than 2^32 on a shard"));
    }

    pub(crate) fn key(&self) -> usize {
        self.key.get() as usize
    }

    /// Whether it is started again when it has stopped itself.
    pub(super) fn comes_again_after_a_stop(&self) -> bool {
        self.is_open() && self.restart.get() == Restart::Always
    }

    /// It is a child, which is restarted or not. If it may be, a failure leaves its mailbox open until that is decided.
    pub(crate) fn set_parent(&self, parent: Parent, restart: Restart, grace: Option<Duration>) {
        self.has_parent.set(true);
        self.restart.set(restart);
        self.bonds().parent.replace(Some(parent));
        self.bonds().grace.set(grace);
    }

    pub(super) fn revives(&self) -> bool {
        self.restart.get() != Restart::Never
    }

    pub(crate) fn bonds(&self) -> &Bonds {
        self.rare().bonds.get_or_init(Box::default)
    }

    pub(crate) fn try_bonds(&self) -> Option<&Bonds> {
        Some(&**self.rare.get()?.bonds.get()?)
    }

    pub(crate) fn has_bonds(&self) -> bool {
        self.try_bonds().is_some()
    }

    pub(crate) fn life_state(&self) -> LifeState {
        match (self.phase.get(), self.stage.get()) {
            (Phase::Closed, _) => LifeState::Stopped,
            (Phase::Open, Stage::Stopping) if self.revives() => LifeState::Starting,
            (_, Stage::Stopping | Stage::Done) => LifeState::Stopping,
            (_, Stage::Starting) => LifeState::Starting,
            (Phase::Draining, Stage::Serving) => LifeState::Draining,
            (Phase::Open, Stage::Serving) => LifeState::Running,
        }
    }

    /// Whether another incarnation could still begin.
    pub(crate) fn is_open_to_restart(&self) -> bool {
        self.revives() && self.phase.get() != Phase::Closed && !self.summonses.has(Summons::Kill)
    }

    /// Whether nothing but a stop would come of going on.
    pub(crate) fn stops_next(&self) -> bool {
        let is_first = |lane: &Fifo<Letter<A>>| matches!(lane.front(), Some(Letter::Stop));
        let urgent = self.rare.get().map(|rare| rare.urgent.borrow());
        match urgent {
            Some(urgent) if !urgent.is_empty() => is_first(&urgent),
            _ => is_first(&self.queue.borrow()),
        }
    }

    pub(crate) fn incarnation(&self) -> u32 {
        self.try_bonds().map_or(0, |bonds| bonds.incarnation.get())
    }

    pub(crate) fn actor_id(&self) -> ActorId {
        ActorId::new(self.id().number())
    }

    pub(crate) fn down(&self, reason: ExitReason) -> Down {
        let gone = Gone {
            id: self.actor_id(),
            name: A::NAME,
            shard: greenroom_runtime::current_shard(),
        };
        gone.down(reason)
    }

    /// An asynchronous handler begins.
    pub(crate) fn begin_handling(&self, method: &'static &'static str) {
        self.handling.set(Some(method));
        self.waits_since_ms.set(0);
    }

    /// Returns how many messages it had besides its own.
    pub(crate) fn end_handling(&self) -> u32 {
        self.handling.set(None);
        let beside = self.beside.take();
        if beside != 0 {
            self.forget_owed();
        }
        beside
    }

    /// What is being polled waits. Whoever summons the actor has to wake it, and if it is to stop, time runs.
    pub(crate) fn note_wait(&self) {
        if self.waits_since_ms.get() == 0 && self.handling.get().is_some() {
            self.waits_since_ms.set(now_ms());
        }
        if self.phase.get() != Phase::Open {
            self.begin_grace(None);
        }
    }

    /// It has no start hook and no timers: it handles messages from now on, and waits for the first.
    pub(crate) fn begin_idle(&self) {
        self.stage.set(Stage::Serving);
        self.activity.set(Activity::Idle);
    }

    /// Wakes the task whatever it does.
    pub(super) fn rouse(&self) {
        if self.activity.get() == Activity::Idle {
            return self.wake();
        }
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Something has gone wrong: from now on nothing is accepted that no later incarnation would handle.
    pub(crate) fn begin_failure(&self) {
        self.summonses.raise(Summons::Fail);
        if !self.revives() && self.phase.get() == Phase::Open {
            self.phase.set(Phase::Draining);
            self.refuse_waiting();
        }
    }

    /// Ends the incarnation, after the message that is being handled.
    pub(crate) fn fail(&self, reason: ExitReason) {
        self.begin_failure();
        if matches!(reason, ExitReason::Panicked(_)) {
            Registry::with(Registry::count_panic);
        }
        let bonds = self.bonds();
        let is_first = bonds.reason.borrow().is_none();
        if is_first {
            self.tally.fail();
            *bonds.reason.borrow_mut() = Some(reason);
        } else {
            contain(|| drop(reason));
        }
    }

    /// Ends the incarnation, at the await point where its handler waits.
    pub(super) fn fail_at_once(&self, reason: ExitReason) {
        if self.stage.get() > Stage::Serving || self.phase.get() == Phase::Closed {
            return contain(|| drop(reason));
        }
        self.fail(reason);
        self.summonses.raise(Summons::Cut);
        self.rouse();
    }

    /// Why it ends, if something went wrong.
    pub(crate) fn failure(&self) -> Option<ExitReason> {
        self.try_bonds()?.reason.borrow().clone()
    }

    pub(crate) fn set_reason(&self, reason: ExitReason) {
        let previous = self.bonds().reason.replace(Some(reason));
        contain(|| drop(previous));
    }

    /// What ties an incarnation to others ends with it.
    pub(crate) fn end_incarnation(&self) {
        self.end_errands();
        let Some(bonds) = self.try_bonds() else {
            return;
        };
        let events = std::mem::take(&mut *bonds.events.borrow_mut());
        contain(|| drop(events));
        let mut concerns = std::mem::take(&mut *bonds.concerns.borrow_mut());
        let reason = self.failure().unwrap_or_else(|| {
            if self.summonses.has(Summons::Kill) {
                ExitReason::Killed
            } else {
                ExitReason::Stopped
            }
        });
        concerns.give_up(&self.down(reason));
    }

    pub(crate) fn begin_incarnation(&self) {
        self.stage.set(Stage::Starting);
        let bonds = self.bonds();
        bonds.incarnation.set(bonds.incarnation.get() + 1);
        let reason = bonds.reason.take();
        contain(|| drop(reason));
        // Of a start that failed, and has been made good.
        self.rare().cause.take();
        for answered in [Summons::Fail, Summons::Cut, Summons::Halt, Summons::Event] {
            self.summonses.clear(answered);
        }
    }

    /// The actor is being cut off: its children go before it, and theirs before them.
    ///
    /// Not each inside the end of its parent, as a family may be deeper than the stack.
    pub(crate) fn kill_children(&self) {
        let mut doomed = self.take_children();
        while let Some(last) = doomed.pop() {
            let children = last.take_children();
            if children.is_empty() {
                last.kill();
            } else {
                doomed.push(last);
                doomed.extend(children);
            }
        }
    }

    /// Its children, which it forgets, as they are to be killed before it is.
    pub(crate) fn take_children(&self) -> Vec<Box<dyn AnyAddr>> {
        let bonds = self.try_bonds();
        bonds.map_or_else(Vec::new, |bonds| bonds.children.take())
    }

    /// Takes the next event for a hook.
    pub(crate) fn next_event(&self) -> Option<Event> {
        let event = self.try_bonds()?.events.borrow_mut().pop_front();
        if event.is_none() {
            self.summonses.clear(Summons::Event);
        }
        event
    }

    pub(crate) fn push_event(&self, event: Event) {
        if self.stage.get() > Stage::Serving || self.phase.get() == Phase::Closed {
            return contain(|| drop(event));
        }
        self.bonds().events.borrow_mut().push_back(event);
        self.summonses.raise(Summons::Event);
        self.wake();
    }

    /// The time in which it is to stop begins to run, if it does not already. The system says how long, if nobody else.
    pub(super) fn begin_grace(&self, length: Option<Duration>) {
        if self.has_grace.replace(true) {
            return;
        }
        let Some(registry) = Registry::current() else {
            return;
        };
        let own = self.try_bonds().and_then(|bonds| bonds.grace.get());
        let length = length.or(own).unwrap_or_else(|| registry.stop_grace());
        registry
            .graces()
            .begin(self.key.get() as usize, self.actor_id(), length);
    }

    /// Its time to stop is over.
    pub(super) fn expire_if_late(&self, grace: Duration) {
        // Its children have their own time.
        let children_stop = self.stage.get() == Stage::Stopping
            && self.handling.get().is_none()
            && self
                .try_bonds()
                .is_some_and(|bonds| bonds.children.len() > 0);
        if !children_stop {
            self.kill_overdue(grace);
        }
    }

    /// Kills it as it did not stop in time.
    pub(super) fn kill_overdue(&self, grace: Duration) {
        let (method, since) = self.waits_in();
        let overdue = Overdue {
            grace,
            method,
            since,
        };
        self.kill_for(Some(ExitReason::GraceExpired(Arc::new(overdue))));
    }
}
