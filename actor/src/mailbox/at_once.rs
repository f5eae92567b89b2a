//! Messages that an idle actor handles on the stack of whoever brings them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use greenroom_runtime::mesh::{Lane, answer_at_once};

use super::{Activity, Letter, Mailbox, Phase};
use crate::actor::Actor;
use crate::context::Ctx;
use crate::fate;
use crate::life::{ExitReason, Summons};
use crate::observe::is_on;
use crate::reply::{Answer, Failure, Reply};

impl<A: Actor> Mailbox<A> {
    /// Asks an actor that has nothing else to do: the message is handled, and answered, before this returns. `build` runs
    /// only then.
    ///
    /// Every rule of the queue holds: it is empty and nobody waits, so nothing is overtaken; and a task gets no more
    /// answers at once than its budget of ready operations allows. The handler must be synchronous.
    #[inline]
    pub(crate) fn ask_at_once<R: 'static>(
        &self,
        lane: Lane,
        build: impl FnOnce(Reply<R>) -> A::LocalMsg,
    ) -> Option<Answer<R>> {
        if !self.may_handle_at_once() {
            return None;
        }
        let answer = answer_at_once(|key| self.handle_at_once(lane, build(Reply::to(key))))?;
        Some(answer.unwrap_or(Err(Failure::NoReply)))
    }

    /// Whether a message may be handled here and now. Not if there is more to do around a handler than to run it: a span, which
    /// a message has once, also if it is then given back; or a look at the clock. So that nobody pays for the question, an
    /// actor whose time is taken says so where what it seldom has is looked at anyway.
    #[inline]
    pub(super) fn may_handle_at_once(&self) -> bool {
        !is_on()
            && self.activity.get() == Activity::Idle
            && self.phase.get() == Phase::Open
            && self
                .rare
                .get()
                .is_none_or(|rare| !rare.is_timed.get() && rare.nobody_waits())
            && !fate::is_decided()
    }

    /// Handles a message on the caller's stack, or queues it if its handler is asynchronous. Only for an idle actor.
    #[inline]
    pub(super) fn handle_at_once(&self, lane: Lane, message: A::LocalMsg) {
        self.activity.set(Activity::AtOnce);
        self.tally.handle();
        let handled = catch_unwind(AssertUnwindSafe(|| {
            self.state().dispatch_now(message, &mut Ctx::new(self.id()))
        }));
        match handled {
            Ok(None) => {}
            Ok(Some(message)) => {
                // It is yet to be handled.
                self.tally.take_back();
                let letter = Letter::Message(message);
                self.lane(lane).borrow_mut().push_back(letter);
                self.announce(lane);
            }
            Err(payload) => {
                // First: the drop of a payload is anyone's code, and may send to this actor.
                self.begin_failure();
                // The asker has it from the drop of its reply.
                self.fail(ExitReason::Panicked(Arc::new(fate::report(payload))));
            }
        }
        self.activity.set(Activity::Idle);
        if !self.summonses.are_none() {
            self.follow_summons();
        } else if self.has_news() {
            self.wake();
        }
    }

    /// What the handler that ran at once brought on is done by the task.
    #[cold]
    fn follow_summons(&self) {
        if self.summonses.has(Summons::Kill) {
            self.abort();
        } else {
            self.wake();
        }
    }
}
