//! Who may put a message in, and who waits for room.

use std::task::{Context, Poll};

use greenroom_runtime::mesh::{Lane, Origin, Ticket};

use super::{Activity, Letter, Mailbox, Notices, Phase};
use crate::actor::{Actor, Overflow};
use crate::address::Refused;

impl<A: Actor> Mailbox<A> {
    /// Whether the holder of a place in a lane's line, or a newcomer with none, is next.
    #[inline]
    fn may_pass(&self, lane: Lane, place: Option<Ticket>) -> bool {
        self.rare
            .get()
            .is_none_or(|rare| rare.lines[lane.index()].waiting.may_pass(place))
    }

    /// Accepts a message if there is room and nobody waits for it, or if the actor's overflow policy has an answer to
    /// that; `build` runs only then.
    #[inline]
    pub(crate) fn try_push(
        &self,
        lane: Lane,
        build: impl FnOnce() -> A::LocalMsg,
    ) -> Result<(), Refused> {
        if self.phase.get() != Phase::Open {
            return Err(Refused::Stopped);
        }
        let mut queue = self.lane(lane).borrow_mut();
        if queue.len() >= Self::room(lane) || !self.may_pass(lane, None) {
            drop(queue);
            return self.push_beyond(lane, build);
        }
        queue.push_with(|| Letter::Message(build()));
        drop(queue);
        self.announce(lane);
        Ok(())
    }

    /// The actor is to see that a lane has a message.
    #[inline]
    pub(super) fn announce(&self, lane: Lane) {
        if lane == Lane::Urgent {
            self.note(Notices::URGENT);
            if self.activity.get() == Activity::Held {
                self.activity.set(Activity::Reading);
            }
        }
        self.wake();
    }

    /// Accepts a message when it is this sender's turn.
    pub(crate) fn poll_push(
        &self,
        lane: Lane,
        place: &mut Option<Ticket>,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> A::LocalMsg,
    ) -> Poll<Result<(), Refused>> {
        if self.phase.get() != Phase::Open {
            *place = None;
            return Poll::Ready(Err(Refused::Stopped));
        }
        if A::OVERFLOW != Overflow::Wait {
            // Nobody waits.
            return Poll::Ready(self.try_push(lane, build));
        }
        let mut queue = self.lane(lane).borrow_mut();
        if queue.len() < Self::room(lane) && self.may_pass(lane, *place) {
            queue.push_with(|| Letter::Message(build()));
            let more = queue.len() < Self::room(lane);
            drop(queue);
            if let Some(ticket) = place.take() {
                self.line(lane).waiting.leave(ticket);
            }
            if !self.may_pass(lane, None) {
                if more {
                    self.call_front(lane);
                } else {
                    self.note(Notices::room(lane));
                }
            }
            self.announce(lane);
            return Poll::Ready(Ok(()));
        }
        drop(queue);
        if self.activity.get() == Activity::Polling {
            // Room comes when the handler ends, and the handler would wait for room.
            if let Some(ticket) = place.take() {
                self.leave(lane, ticket);
            }
            return Poll::Ready(Err(Refused::Full));
        }
        *place = Some(self.join_line(lane, *place, cx));
        Poll::Pending
    }

    /// Waits behind those who wait for a lane already; false if nobody does.
    pub(super) fn join_others(
        &self,
        lane: Lane,
        place: &mut Option<Ticket>,
        cx: &Context<'_>,
    ) -> bool {
        let others = !self.may_pass(lane, *place);
        if others {
            *place = Some(self.join_line(lane, *place, cx));
        }
        others
    }

    fn join_line(&self, lane: Lane, place: Option<Ticket>, cx: &Context<'_>) -> Ticket {
        self.note(Notices::room(lane));
        self.line(lane).waiting.join(place, cx.waker())
    }

    /// A sender gives its place in the line up.
    pub(crate) fn leave(&self, lane: Lane, ticket: Ticket) {
        self.line(lane).waiting.leave(ticket);
        // If room was meant for it, the next one takes it.
        self.call_front(lane);
    }

    /// The front of the line comes and takes the room there is, or waits for the next.
    fn call_front(&self, lane: Lane) {
        self.line(lane).waiting.wake_front();
    }

    /// A message was taken out of a lane, which has so many left.
    pub(super) fn make_room_known(&self, lane: Lane, left: usize) {
        let line = self.line(lane);
        // Beyond the bound, with what came from elsewhere, this made no room yet.
        let has_room = left < Self::room(lane);
        if has_room {
            // Called once: it asks again if it does not get in.
            self.call_front(lane);
        }
        let is_calm = match A::OVERFLOW {
            // A choke makes senders wait: they are called when it is worth their while.
            Overflow::Wait => left <= Self::room(lane) / 2,
            // A choke refuses senders, which is right only while there is no room.
            _ => has_room,
        };
        if is_calm && !line.choked.borrow().is_empty() {
            let choked = std::mem::take(&mut *line.choked.borrow_mut());
            for origin in choked {
                self.unchoke(lane, origin);
            }
        }
        let is_uncalled = !has_room && !line.waiting.is_empty();
        if !is_uncalled && line.choked.borrow().is_empty() {
            self.unnote(Notices::room(lane));
        }
    }

    #[cold]
    pub(super) fn choke(&self, lane: Lane, origin: Origin) {
        let mut choked = self.line(lane).choked.borrow_mut();
        if !choked.contains(&origin) {
            choked.push(origin);
            drop(choked);
            self.note(Notices::room(lane));
            match self.flow() {
                None => origin.choke(self.id(), lane),
                Some(flow) => origin.choke_flow(flow, lane),
            }
        }
    }
}
