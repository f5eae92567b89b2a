//! What the shard does with a mailbox: it delivers what came from elsewhere, and ends it with the system.

use std::time::Duration;

use greenroom_runtime::mesh::{Lane, Origin, Resident};

use super::{Letter, Mailbox, Parcel, Phase};
use crate::actor::{Actor, Overflow};
use crate::fate::{self, Fate};
use crate::life::ActorId;
use crate::observe::{ActorSnapshot, DeadLetterReason, report_call};
use crate::registry::AnyActor;
use crate::reply::Carries;

impl<A: Actor> Resident for Mailbox<A> {
    type Message = Parcel<A>;

    #[inline]
    fn deliver(&self, parcel: Parcel<A>, origin: Origin) {
        match parcel {
            Parcel::Message(message) => self.arrive(Lane::Normal, message, origin),
            Parcel::Urgent(message) => self.arrive(Lane::Urgent, message, origin),
            Parcel::Stop => self.stop(),
            Parcel::Kill => self.kill(),
            Parcel::Control(control) => self.control(*control),
            Parcel::GivenUp(ask) => self.note_given_up(ask),
            Parcel::Probe(probe) => self.take_probe(probe),
        }
    }

    fn undeliverable(parcel: Parcel<A>) {
        Self::refuse(parcel, Origin::Direct);
    }

    /// A message goes home: its arguments are dropped where they came from, and the drop of its reply, which says that the
    /// actor has stopped, needs no answer of its own.
    fn refuse(parcel: Parcel<A>, origin: Origin) {
        let (Parcel::Message(message) | Parcel::Urgent(message)) = &parcel else {
            return Self::returned(parcel);
        };
        report_call::<A>(message.carried().method(), DeadLetterReason::Late);
        if let Err(parcel) = origin.send_back::<Self>(parcel) {
            Self::returned(parcel);
        }
    }

    fn returned(parcel: Parcel<A>) {
        fate::with(Fate::Stopped, || crate::life::contain(|| drop(parcel)));
    }
}

impl<A: Actor> Mailbox<A> {
    #[inline]
    fn arrive(&self, lane: Lane, message: A::Msg, origin: Origin) {
        if self.phase.get() != Phase::Open {
            return <Self as Resident>::refuse(Parcel::of(lane, message), origin);
        }
        if self.may_handle_at_once() && origin.may_work_now() {
            return self.handle_at_once(lane, message.into());
        }
        let mut queue = self.lane(lane).borrow_mut();
        if A::OVERFLOW != Overflow::Wait && queue.len() >= Self::room(lane) {
            drop(queue);
            return self.arrive_beyond(lane, message.into(), origin);
        }
        queue.push_with(|| Letter::Message(message.into()));
        let is_full = queue.len() >= Self::room(lane);
        drop(queue);
        if is_full && matches!(A::OVERFLOW, Overflow::Wait | Overflow::Reject) {
            self.choke(lane, origin);
        }
        self.announce(lane);
    }
}

impl<A: Actor> AnyActor for Mailbox<A> {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn stop(&self) {
        Self::stop(self);
    }

    fn inspect(&self) -> ActorSnapshot {
        Self::inspect(self)
    }

    fn ask_waits(&self) -> bool {
        Self::ask_waits(self)
    }

    fn owes_waits(&self) -> bool {
        Self::owes_waits(self)
    }

    fn queued(&self) -> usize {
        self.queued_in(Lane::Normal) + self.queued_in(Lane::Urgent)
    }

    fn id(&self) -> ActorId {
        self.actor_id()
    }

    fn is_root(&self) -> bool {
        !self.has_parent.get()
    }

    fn is_quiet(&self) -> bool {
        self.is_idle()
    }

    fn expire(&self, grace: Duration) {
        self.expire_if_late(grace);
    }

    fn kill_overdue(&self, grace: Duration) {
        Self::kill_overdue(self, grace);
    }

    fn waits_in(&self) -> (Option<&'static str>, Option<Duration>) {
        Self::waits_in(self)
    }
}
