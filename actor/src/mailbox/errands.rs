//! The actor's errands, as far as the mailbox has to do with them.

use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use super::{Letter, Mailbox, Phase};
use crate::actor::Actor;
use crate::errand::{Brought, Errands};
use crate::fate::PanicReport;
use crate::life::{ExitReason, Stage};

impl<A: Actor> Mailbox<A> {
    /// The table of errands, made when first needed.
    pub(crate) fn errands(&self) -> &Rc<Errands<A>> {
        self.rare().errands.get_or_init(|| Rc::new(Errands::new()))
    }

    #[inline]
    pub(super) fn errands_begun(&self) -> Option<&Rc<Errands<A>>> {
        self.rare.get()?.errands.get()
    }

    /// Puts timers that are due into the queue. Comes before the actor waits or goes on.
    #[inline]
    pub(crate) fn ripen_errands(&self) {
        if let Some(errands) = self.errands_begun() {
            errands.ripen(self);
        }
    }

    /// Whom to wake for the actor; `None` only while its task is being spawned.
    pub(crate) fn waker(&self) -> Option<&Waker> {
        self.waker.get()
    }

    /// Puts the letter of an errand into the queue, beyond the bound if need be. The mailbox is open.
    pub(crate) fn push_errand(&self, slot: u32) {
        debug_assert!(self.is_open(), "an errand came after the stop");
        self.queue.borrow_mut().push_back(Letter::Errand(slot));
        self.wake();
    }

    /// What the letter of an errand brings; `None` if it was cancelled.
    #[cold]
    pub(crate) fn take_errand(&self, slot: u32) -> Option<Brought<A>> {
        self.errands().take(self, slot)
    }

    /// Ends what this incarnation of the actor has begun.
    pub(crate) fn end_errands(&self) {
        if let Some(errands) = self.errands_begun() {
            errands.clear();
        }
    }

    /// Something of the actor's own has panicked, outside of its handlers: it fails after the message it is at.
    pub(crate) fn fail_beside(&self, report: PanicReport) {
        if self.stage.get() > Stage::Serving || self.phase.get() == Phase::Closed {
            return;
        }
        self.fail(ExitReason::Panicked(Arc::new(report)));
        self.rouse();
    }
}
