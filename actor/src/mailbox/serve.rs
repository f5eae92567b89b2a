//! The actor's own side: taking letters out, and running handlers.

use std::cell::RefMut;
use std::task::Poll;

use super::{Activity, Letter, Mailbox};
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

    /// Takes the next letter. Room that this makes is passed on.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Letter<A>> {
        let (letter, left) = {
            let mut queue = self.queue.borrow_mut();
            (queue.pop_front()?, queue.len())
        };
        if self.room_wanted.get() {
            self.make_room_known(left);
        }
        Some(letter)
    }

    /// Waits until there is a letter.
    pub(crate) async fn filled(&self) {
        std::future::poll_fn(|cx| {
            self.begin_poll(cx.waker());
            if !self.queue.borrow().is_empty() || !self.summonses.are_none() {
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
        let result = poll();
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
