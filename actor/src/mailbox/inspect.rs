//! What a mailbox tells of its actor.

use std::cell::RefCell;
use std::time::Duration;

use greenroom_runtime::mesh::{Fifo, Lane};

use super::reading::now_ms;
use super::{Activity, Letter, Mailbox, Phase};
use crate::actor::Actor;
use crate::cycle::Wait;
use crate::handling;
use crate::observe::{
    ActorActivity, ActorSnapshot, HandlerSnapshot, Handling, LaneSnapshot, Tally, Timed,
    WaitSnapshot,
};

/// What the handler that has the actor for itself was found to wait for, when it was asked last.
#[derive(Default)]
pub(super) struct Shown {
    /// It was asked, and has not been polled since.
    is_asked: bool,
    /// One of the waits. As long as the handler still waits for that, this is true.
    wait: u64,
    waits: Vec<WaitSnapshot>,
}

impl<A: Actor> Mailbox<A> {
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// A handler begins with a message, or says that it cannot run without waiting.
    #[inline]
    pub(crate) fn begin_message(&self, message: &A::LocalMsg) -> Handling {
        self.tally.handle();
        Handling::begin(self, message)
    }

    /// The handler that runs has this message, too.
    pub(crate) fn join_message(&self, message: &A::LocalMsg) {
        self.tally.handle();
        Handling::join::<A>(message);
    }

    /// Takes the time that its handlers run, if that is wanted.
    #[inline]
    pub(crate) fn time(&self) -> Option<Timed<'_>> {
        self.tally.time()
    }

    /// What the actor is at.
    pub(super) fn inspect(&self) -> ActorSnapshot {
        ActorSnapshot {
            actor: A::NAME,
            id: self.actor_id(),
            names: self.names(),
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
            handlers: self.handlers(),
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

    /// The handlers that run.
    fn handlers(&self) -> Vec<HandlerSnapshot> {
        let snapshot = |method: &&'static str, since_ms, waits: &[_]| HandlerSnapshot {
            method,
            age_ns: waited(since_ms).map(nanos),
            waits_for: waits.to_vec(),
        };
        let rare = self.rare.get();
        if let Some(readers) = rare.map(|rare| rare.readers.borrow())
            && !readers.is_empty()
        {
            let seats = readers.iter().map(|(_, seat)| seat);
            let shown = seats.map(|seat| {
                let waits: &[_] = if seat.waits_on == 0 { &[] } else { &seat.waits };
                snapshot(seat.method, seat.waits_since_ms, waits)
            });
            return shown.collect();
        }
        let Some(method) = self.handling.get() else {
            return Vec::new();
        };
        let shown = rare.map(|rare| rare.shown.borrow());
        let waits = match &shown {
            Some(shown) if shown.wait == self.waits_on.get() => &*shown.waits,
            _ => &[],
        };
        vec![snapshot(method, self.waits_since_ms.get(), waits)]
    }

    /// The method whose handler waits, and for how long; of several, the one that has been waiting longest.
    pub(crate) fn waits_in(&self) -> (Option<&'static str>, Option<Duration>) {
        if let Some(rare) = self.rare.get() {
            let readers = rare.readers.borrow();
            let seats = readers.iter().map(|(_, seat)| seat);
            let waits = seats.map(|seat| (Some(*seat.method), waited(seat.waits_since_ms)));
            if let Some(longest) = waits.max_by_key(|(_, waited)| *waited) {
                return longest;
            }
        }
        match self.handling.get() {
            Some(method) => (Some(*method), waited(self.waits_since_ms.get())),
            None => (None, None),
        }
    }

    /// Has the handlers that wait for calls say which, in their next polls. False if there are none.
    pub(super) fn ask_waits(&self) -> bool {
        if self.phase.get() == Phase::Closed {
            return false;
        }
        if self.waits_on.get() != 0 {
            self.rare().shown.replace(Shown {
                is_asked: true,
                ..Shown::default()
            });
        }
        if let Some(rare) = self.rare.get() {
            for (_, seat) in rare.readers.borrow_mut().iter_mut() {
                seat.is_asked = seat.waits_on != 0;
            }
        }
        let are_asked = self.owes_waits();
        if are_asked {
            self.be_asked();
        }
        are_asked
    }

    /// Whether one of them has not said so yet.
    pub(super) fn owes_waits(&self) -> bool {
        self.rare.get().is_some_and(|rare| {
            let is_asked = rare.shown.borrow().is_asked && self.waits_on.get() != 0;
            is_asked || rare.readers.borrow().iter().any(|(_, seat)| seat.is_asked)
        })
    }

    /// The handler that has the actor for itself has said which calls it waits for.
    pub(crate) fn note_waits(&self, waits: &[Wait]) {
        let Some(rare) = self.rare.get().filter(|rare| rare.shown.borrow().is_asked) else {
            return;
        };
        rare.shown.replace(Shown {
            is_asked: false,
            wait: handling::last_wait(),
            waits: waits.iter().map(WaitSnapshot::new).collect(),
        });
    }
}

fn waited(since_ms: u32) -> Option<Duration> {
    (since_ms > 0).then(|| Duration::from_millis(now_ms().wrapping_sub(since_ms).into()))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
