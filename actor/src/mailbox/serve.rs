//! The actor's own side: taking messages out, and running handlers.

use std::cell::RefMut;
use std::task::Poll;

use greenroom_runtime::mesh::Lane;

use super::{Activity, Letter, Mailbox, Notices};
use crate::actor::Actor;

impl<A: Actor> Mailbox<A> {
    #[inline]
    pub(super) fn wake(&self) {
        if matches!(self.activity.get(), Activity::Idle | Activity::Reading) {
            self.activity.set(Activity::Busy);
            if let Some(waker) = self.waker.get() {
                waker.wake_by_ref();
            }
        }
    }

    /// Takes the next message, if there is one and the actor may handle it. Room that this makes is passed on.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Letter<A>> {
        if !self.notices.get().is_empty() {
            return self.pop_heeding();
        }
        self.queue.borrow_mut().pop_front()
    }

    #[cold]
    fn pop_heeding(&self) -> Option<Letter<A>> {
        self.pop_from(self.next_lane())
    }

    /// The lane whose front is the next message.
    pub(super) fn next_lane(&self) -> Lane {
        if self.notices.get().has(Notices::URGENT) {
            if !self.lane(Lane::Urgent).borrow().is_empty() {
                return Lane::Urgent;
            }
            self.unnote(Notices::URGENT);
        }
        Lane::Normal
    }

    pub(super) fn pop_from(&self, lane: Lane) -> Option<Letter<A>> {
        let (message, left) = {
            let mut queue = self.lane(lane).borrow_mut();
            (queue.pop_front()?, queue.len())
        };
        if self.notices.get().has(Notices::room(lane)) {
            self.make_room_known(lane, left);
        }
        Some(message)
    }

    /// Whether there is something for the actor to do.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        !self.queue.borrow().is_empty() || self.notices.get().has(Notices::URGENT)
    }

    /// Waits until there is something to do.
    pub(crate) async fn filled(&self) {
        std::future::poll_fn(|_| {
            self.ripen_errands();
            if self.has_news() || !self.summonses.are_none() {
                return Poll::Ready(());
            }
            self.activity.set(Activity::Idle);
            if self.looks_first() {
                self.forget_given_up();
            }
            self.release_burst();
            Poll::Pending
        })
        .await;
    }

    /// Gives back what a burst made the queue grow to.
    fn release_burst(&self) {
        const KEPT: usize = 64;
        let mut queue = self.queue.borrow_mut();
        if queue.capacity() > 4 * KEPT.max(A::MAILBOX.min(1024)) {
            queue.shrink_to(KEPT);
        }
    }

    /// Polls one of the actor's own handlers.
    pub(crate) fn while_handling<R>(&self, poll: impl FnOnce() -> R) -> R {
        self.activity.set(Activity::Polling);
        let time = self.time();
        let result = poll();
        drop(time);
        self.activity.set(Activity::Busy);
        result
    }

    /// The actor itself, to be held for as long as a handler runs: also while it waits, for the borrow is what keeps
    /// every other handler out.
    #[inline]
    pub(crate) fn state(&self) -> RefMut<'_, A> {
        RefMut::map(self.state.borrow_mut(), |state| {
            state.as_mut().expect("an actor stays until it ends")
        })
    }
}
