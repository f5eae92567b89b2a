//! What handlers that go together want of their mailbox: a reading phase, see `life/readers.rs`, and a batch.

use std::cell::{Ref, RefCell};

use slab::Slab;

use super::{Activity, Letter, Mailbox};
use crate::actor::Actor;
use crate::handling;
use crate::observe::WaitSnapshot;
use crate::registry::Registry;

/// The next letter, seen from what it may go together with.
pub(crate) enum Next<A: Actor> {
    /// It may be handled now, and is not in the mailbox any more.
    Message(A::LocalMsg),
    /// Its asker has given up, and it was dropped.
    Skipped,
    /// It has to wait, and stays.
    Other,
    /// There is none.
    Empty,
}

/// What is known of a concurrent handler that runs.
pub(super) struct Seat {
    pub(super) method: &'static &'static str,
    /// As for a handler that has the actor for itself.
    pub(super) waits_since_ms: u32,
    pub(super) waits_on: u64,
    /// It is to say which calls it waits for.
    pub(super) is_asked: bool,
    pub(super) waits: Vec<WaitSnapshot>,
}

/// Those that run, each in a place of its own.
pub(super) type Seats = RefCell<Slab<Seat>>;

impl<A: Actor> Mailbox<A> {
    /// Takes the next letter if it is a message of the wanted kind.
    pub(crate) fn pop_if(&self, is_wanted: impl FnOnce(&A::LocalMsg) -> bool) -> Next<A> {
        let lane = self.next_lane();
        match self.lane(lane).borrow().front() {
            None => return Next::Empty,
            Some(Letter::Message(message)) if is_wanted(message) => {}
            Some(_) => return Next::Other,
        }
        match self.pop_from(lane) {
            Some(Letter::Message(message)) if self.looks_first() => {
                let wanted = self.skip_given_up(message);
                wanted.map_or(Next::Skipped, Next::Message)
            }
            Some(Letter::Message(message)) => Next::Message(message),
            _ => unreachable!("the letter was there"),
        }
    }

    /// The actor's task is polled: it will look at the next letter without being woken for it.
    pub(crate) fn go_on_reading(&self) {
        self.activity.set(Activity::Busy);
        self.ripen_errands();
    }

    /// The next letter wakes the actor's task, whose readers wait for something. If there is one already, which has to
    /// wait for them, only an urgent one does.
    pub(crate) fn wait_reading(&self, has_next: bool) {
        self.activity.set(if has_next {
            Activity::Held
        } else {
            Activity::Reading
        });
    }

    /// The actor itself for a handler that shares it, to be held for as long as the handler runs.
    pub(crate) fn shared_state(&self) -> Ref<'_, A> {
        Ref::map(self.state.borrow(), |state| {
            state.as_ref().expect("an actor stays until it ends")
        })
    }

    /// A concurrent handler begins. Its place is to be left when it has ended.
    pub(crate) fn seat_reader(&self, method: &'static &'static str) -> usize {
        self.rare().readers.borrow_mut().insert(Seat {
            method,
            waits_since_ms: 0,
            waits_on: 0,
            is_asked: false,
            waits: Vec::new(),
        })
    }

    /// Polls it. If it is asked, it says which calls it waits for.
    pub(crate) fn poll_reader<T>(&self, place: usize, poll: impl FnOnce() -> T) -> T {
        if !self.rare().readers.borrow()[place].is_asked {
            return poll();
        }
        let (polled, waits) = handling::inquiring(poll);
        let seat = &mut self.rare().readers.borrow_mut()[place];
        seat.is_asked = false;
        seat.waits = waits.iter().map(WaitSnapshot::new).collect();
        polled
    }

    /// It waits, for this call among others; zero for none.
    pub(crate) fn note_reader_wait(&self, place: usize, waits_on: u64) {
        let seat = &mut self.rare().readers.borrow_mut()[place];
        seat.waits_on = waits_on;
        if seat.waits_since_ms == 0 {
            seat.waits_since_ms = now_ms();
        }
    }

    pub(crate) fn unseat_reader(&self, place: usize) {
        self.rare().readers.borrow_mut().remove(place);
    }
}

/// Milliseconds of the shard, and never zero, which stands for none.
pub(super) fn now_ms() -> u32 {
    Registry::with(Registry::age_ms).unwrap_or(0).max(1)
}
