//! The last turns of a shard: its tasks have heard of the shutdown and are given time.

use std::task::Waker;

use super::Shard;
use crate::shutdown::Phase;

/// What a shard knows of the draining it takes part in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Draining {
    /// The deadline there is a timer for, so that the shard does not sleep past it.
    deadline_ns: Option<u64>,
    /// What was last said about having no tasks.
    is_idle: bool,
}

impl Shard {
    /// Whether there is another turn.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        match self.team.stop().phase() {
            Phase::Running => true,
            Phase::Draining => self.goes_on_draining(),
            _ => false,
        }
    }

    #[cold]
    fn goes_on_draining(&self) -> bool {
        let mut draining = self.draining.get();
        let deadline_ns = self.team.stop().drain_deadline_ns();
        if self.clock.now_ns() >= deadline_ns {
            self.team.cancel(None);
            return false;
        }
        let is_new = draining.deadline_ns.is_none();
        if draining.deadline_ns != Some(deadline_ns) {
            if is_new {
                self.team.stop().enter(self.id, Phase::Draining);
            }
            draining.deadline_ns = Some(deadline_ns);
            self.timers
                .borrow_mut()
                .insert(deadline_ns, Waker::noop().clone());
        }
        // What was sent before the shutdown began is taken in by the turn after the first look at the phase.
        let is_idle = !is_new && !self.has_work();
        let was_idle = std::mem::replace(&mut draining.is_idle, is_idle);
        self.draining.set(draining);
        if is_idle != was_idle && self.team.stop().note_idle(self.id, is_idle) {
            self.team.cancel(None);
            return false;
        }
        true
    }

    /// Whether the next look at the phase has news for the others, and must not wait until something wakes the shard.
    pub(super) fn has_to_report_idleness(&self) -> bool {
        let draining = self.draining.get();
        draining.deadline_ns.is_some() && draining.is_idle == self.has_work()
    }

    /// Whether something here is not done: tasks, and what may become some.
    fn has_work(&self) -> bool {
        self.tasks.borrow().len() > 0 || self.unfinished.get() || self.float.has_work()
    }
}
