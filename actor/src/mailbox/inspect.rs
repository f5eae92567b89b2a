//! What a mailbox tells of its actor.

use std::cell::RefCell;
use std::time::Duration;

use greenroom_runtime::mesh::{Fifo, Lane};

use super::reading::now_ms;
use super::{Activity, Letter, Mailbox};
use crate::actor::Actor;
use crate::observe::{ActorActivity, ActorSnapshot, HandlerSnapshot, LaneSnapshot};

impl<A: Actor> Mailbox<A> {
    /// What the actor is at.
    pub(super) fn inspect(&self) -> ActorSnapshot {
        ActorSnapshot {
            actor: A::NAME,
            id: self.actor_id().to_string(),
            state: self.life_state(),
            activity: match self.activity.get() {
                Activity::Idle => ActorActivity::Idle,
                Activity::Reading
                | Activity::Held
                | Activity::Busy
                | Activity::Polling
                | Activity::AtOnce => ActorActivity::Busy,
            },
            lanes: self.lanes(),
            handlers: self
                .handlers()
                .into_iter()
                .map(|(method, waited)| HandlerSnapshot {
                    method,
                    age_ns: waited.map(|age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)),
                })
                .collect(),
            restarts: self.incarnation(),
            errands: self.errands_begun().map_or(0, |errands| errands.len()),
        }
    }

    fn lanes(&self) -> Vec<LaneSnapshot> {
        let lanes = [(Lane::Normal, "normal"), (Lane::Urgent, "urgent")];
        let snapshot = |(lane, name)| LaneSnapshot {
            lane: name,
            queued: self.queued_in(lane),
        };
        lanes.map(snapshot).into()
    }

    /// How many messages stand in a lane.
    pub(super) fn queued_in(&self, lane: Lane) -> usize {
        let is_message = |letter: &&Letter<A>| matches!(letter, Letter::Message(_));
        let count = |lane: &RefCell<Fifo<_>>| lane.borrow().iter().filter(is_message).count();
        match lane {
            Lane::Normal => count(&self.queue),
            Lane::Urgent => self.rare.get().map_or(0, |rare| count(&rare.urgent)),
        }
    }

    /// The handlers that run: their methods, and how long each has been waiting if it had to.
    fn handlers(&self) -> Vec<(&'static str, Option<Duration>)> {
        let waited = |since_ms: u32| {
            (since_ms > 0).then(|| Duration::from_millis(now_ms().wrapping_sub(since_ms).into()))
        };
        if let Some(rare) = self.rare.get()
            && !rare.readers.borrow().is_empty()
        {
            let readers = rare.readers.borrow();
            let seats = readers.iter().map(|(_, seat)| seat);
            return seats
                .map(|seat| (*seat.method, waited(seat.waits_since_ms)))
                .collect();
        }
        let alone = self.handling.get();
        alone
            .map(|method| (*method, waited(self.waits_since_ms.get())))
            .into_iter()
            .collect()
    }

    /// The method whose handler waits, and for how long; of several, the one that has been waiting longest.
    pub(crate) fn waits_in(&self) -> (Option<&'static str>, Option<Duration>) {
        match self
            .handlers()
            .into_iter()
            .max_by_key(|(_, waited)| *waited)
        {
            Some((method, waited)) => (Some(method), waited),
            None => (None, None),
        }
    }
}
