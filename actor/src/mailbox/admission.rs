//! Who may put a message in, and who waits for room.

use std::task::{Context, Poll};

use greenroom_runtime::mesh::{Origin, Ticket};

use super::{Activity, Letter, Mailbox, Phase};
use crate::actor::Actor;
use crate::address::Refused;

impl<A: Actor> Mailbox<A> {
    #[inline]
    pub(super) fn nobody_waits(&self) -> bool {
        self.rare.get().is_none_or(|rare| rare.waiting.is_empty())
    }

    /// Accepts a message if there is room and nobody waits for it; `build` runs only then.
    #[inline]
    pub(crate) fn try_push(&self, build: impl FnOnce() -> A::LocalMsg) -> Result<(), Refused> {
        if self.phase.get() != Phase::Open {
            return Err(Refused::Stopped);
        }
        {
            let mut queue = self.queue.borrow_mut();
            if queue.len() >= A::MAILBOX || !self.nobody_waits() {
                return Err(Refused::Full);
            }
            queue.push_back(Letter::Message(build()));
        }
        self.wake();
        Ok(())
    }

    /// Accepts a message when it is this sender's turn.
    pub(crate) fn poll_push(
        &self,
        place: &mut Option<Ticket>,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> A::LocalMsg,
    ) -> Poll<Result<(), Refused>> {
        if self.phase.get() != Phase::Open {
            *place = None;
            return Poll::Ready(Err(Refused::Stopped));
        }
        let mut queue = self.queue.borrow_mut();
        let my_turn = self
            .rare
            .get()
            .is_none_or(|rare| rare.waiting.may_pass(*place));
        if queue.len() < A::MAILBOX && my_turn {
            queue.push_back(Letter::Message(build()));
            let more = queue.len() < A::MAILBOX;
            drop(queue);
            if let Some(ticket) = place.take() {
                self.rare().waiting.leave(ticket);
            }
            if !self.nobody_waits() {
                if more {
                    self.call_front();
                } else {
                    self.room_wanted.set(true);
                }
            }
            self.wake();
            return Poll::Ready(Ok(()));
        }
        drop(queue);
        if self.activity.get() == Activity::Polling {
            // Room comes when the handler ends, and the handler would wait for room.
            if let Some(ticket) = place.take() {
                self.leave(ticket);
            }
            return Poll::Ready(Err(Refused::Full));
        }
        *place = Some(self.join_line(*place, cx));
        Poll::Pending
    }

    pub(super) fn join_line(&self, place: Option<Ticket>, cx: &Context<'_>) -> Ticket {
        self.room_wanted.set(true);
        self.rare().waiting.join(place, cx.waker())
    }

    /// A sender gives its place in the line up.
    pub(crate) fn leave(&self, ticket: Ticket) {
        self.rare().waiting.leave(ticket);
        // If room was meant for it, the next one takes it.
        self.call_front();
    }

    /// The front of the line comes and takes the room there is, or waits for the next.
    fn call_front(&self) {
        self.rare().waiting.wake_front();
    }

    #[cold]
    pub(super) fn make_room_known(&self, left: usize) {
        let rare = self.rare();
        // Beyond the bound, with what came from elsewhere, this made no room yet.
        let has_room = left < A::MAILBOX;
        if has_room {
            // Called once: it asks again if it does not get in.
            self.call_front();
        }
        if left <= A::MAILBOX / 2 && !rare.choked.borrow().is_empty() {
            let choked = std::mem::take(&mut *rare.choked.borrow_mut());
            for origin in choked {
                self.unchoke(origin);
            }
        }
        let is_uncalled = !has_room && !rare.waiting.is_empty();
        self.room_wanted
            .set(is_uncalled || !rare.choked.borrow().is_empty());
    }

    #[cold]
    pub(super) fn choke(&self, origin: Origin) {
        let mut choked = self.rare().choked.borrow_mut();
        if !choked.contains(&origin) {
            choked.push(origin);
            drop(choked);
            self.room_wanted.set(true);
            match self.flow() {
                None => origin.choke(self.id()),
                Some(flow) => origin.choke_flow(flow),
            }
        }
    }
}
