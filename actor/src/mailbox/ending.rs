//! The phases: how an actor is stopped or killed, and what becomes of what it was sent.

use std::task::{Context, Poll, Waker};

use greenroom_runtime::mesh::{Lane, ResidentId, Ticket};

use super::{Activity, Letter, Mailbox, Notices, Phase};
use crate::actor::Actor;
use crate::fate;
use crate::life::{ExitReason, Summons, contain};
use crate::observe::{DeadLetterReason, report};

impl<A: Actor> Mailbox<A> {
    /// No more sends; what was accepted before is still handled.
    pub(crate) fn stop(&self) {
        if self.phase.get() != Phase::Open {
            return;
        }
        self.phase.set(Phase::Draining);
        if self.activity.get() != Activity::Idle {
            self.begin_grace(None);
        }
        self.queue.borrow_mut().push_back(Letter::Stop);
        self.refuse_waiting();
        self.rouse();
    }

    /// The actor itself wants to stop. If it is started again then, later messages are for its next incarnation.
    pub(crate) fn stop_self(&self) {
        if self.comes_again_after_a_stop() {
            self.queue.borrow_mut().push_back(Letter::Stop);
        } else {
            self.stop();
        }
    }

    /// No more sends, and nothing more is handled.
    pub(crate) fn stop_now(&self) {
        match self.phase.get() {
            Phase::Open => {
                self.phase.set(Phase::Draining);
                if self.activity.get() != Activity::Idle {
                    self.begin_grace(None);
                }
                self.refuse_waiting();
            }
            Phase::Draining => {}
            Phase::Closed => return,
        }
        self.stop_first();
        self.rouse();
    }

    /// As [`Mailbox::stop_self`], after the message that is being handled.
    pub(crate) fn stop_self_now(&self) {
        if self.comes_again_after_a_stop() {
            self.stop_first();
        } else {
            self.stop_now();
        }
    }

    /// The stop goes in front of everything, urgent or not.
    fn stop_first(&self) {
        self.lane(Lane::Urgent)
            .borrow_mut()
            .push_front(Letter::Stop);
        self.note(Notices::URGENT);
    }

    pub(crate) fn kill(&self) {
        self.kill_for(None);
    }

    /// Kills the actor, for a reason that is not the wish of somebody.
    pub(super) fn kill_for(&self, reason: Option<ExitReason>) {
        if self.phase.get() == Phase::Closed || self.summonses.has(Summons::Kill) {
            return;
        }
        if let Some(reason) = reason {
            self.set_reason(reason);
        } else if self.phase.get() == Phase::Open
            && let Some(bonds) = self.try_bonds()
        {
            // It was to be restarted after a failure, which is not why it ends.
            let reason = bonds.reason.take();
            contain(|| drop(reason));
        }
        self.summonses.raise(Summons::Kill);
        self.phase.set(Phase::Draining);
        if self.activity.get() != Activity::AtOnce {
            self.abort();
        }
    }

    /// Cancels the actor's task. From inside the task this takes effect when its poll returns.
    pub(super) fn abort(&self) {
        if let Some(task) = self.task.take() {
            // Kills happen inside drops too, whose fate is not to end with this one.
            let announced = fate::current();
            task.abort();
            fate::set(announced);
        }
    }

    /// Everyone in line comes and sees that the actor takes no more.
    pub(super) fn refuse_waiting(&self) {
        if let Some(rare) = self.rare.get() {
            rare.lines.iter().for_each(|line| line.waiting.wake_all());
        }
    }

    /// Ends the actor itself. No handler runs any more: what ran was dropped before, with its borrow.
    pub(crate) fn drop_actor(&self) {
        let actor = self.state.take();
        contain(|| drop(actor));
    }

    /// The actor takes its place: its mailbox was there first, or its last incarnation was dropped.
    pub(crate) fn set_actor(&self, actor: A) {
        let previous = self.state.replace(Some(actor));
        debug_assert!(
            previous.is_none(),
            "the last incarnation is dropped before the next is made"
        );
    }

    /// What was sent to an actor that does not start is handed back with this cause.
    pub(crate) fn note_failed_start(&self, cause: &dyn std::fmt::Display) {
        self.rare().cause.set(Some(cause.to_string().into()));
    }

    /// The actor is gone: hands back everything that was accepted and not handled.
    pub(crate) fn close(&self, reason: DeadLetterReason) {
        self.phase.set(Phase::Closed);
        let urgent = self.rare.get().map(|rare| rare.urgent.take());
        let lanes = [urgent.unwrap_or_default(), self.queue.take()];
        let cause = self.rare.get().and_then(|rare| rare.cause.take());
        fate::with_cause(cause, || {
            for mut lane in lanes {
                while let Some(letter) = lane.pop_front() {
                    if let Letter::Message(message) = &letter {
                        report::<A>(message, reason);
                    }
                    contain(|| drop(letter));
                }
            }
        });
        self.refuse_waiting();
        if let Some(rare) = self.rare.get() {
            for lane in [Lane::Urgent, Lane::Normal] {
                for origin in rare.lines[lane.index()].choked.take() {
                    match self.flow() {
                        None => origin.dismiss(self.id(), lane),
                        // What is held back is for the next instance.
                        Some(flow) => origin.unchoke_flow(flow, lane),
                    }
                }
            }
            rare.belongings.release();
        }
        self.task.take();
    }

    /// Stops the actor for a caller outside, whose messages may stand in the line: the stop takes its place behind them.
    pub(crate) fn stop_outside(id: ResidentId<Self>) {
        let mut place = None;
        let mut poll = move |cx: &mut Context<'_>| {
            let polled = id.visit(|mailbox| mailbox.poll_stop(&mut place, cx));
            polled.unwrap_or(Poll::Ready(()))
        };
        if poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            // Its time runs from now, wherever the stop stands.
            id.visit(|mailbox| mailbox.begin_grace(None));
            greenroom_runtime::spawn(std::future::poll_fn(poll)).detach();
        }
    }

    fn poll_stop(&self, place: &mut Option<Ticket>, cx: &mut Context<'_>) -> Poll<()> {
        if self.phase.get() == Phase::Open {
            if self.join_others(Lane::Normal, place, cx) {
                return Poll::Pending;
            }
            self.stop();
        }
        if let Some(ticket) = place.take() {
            self.line(Lane::Normal).waiting.leave(ticket);
        }
        Poll::Ready(())
    }
}
