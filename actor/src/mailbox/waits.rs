//! What an actor's handler waits for, and who asks about it; see [`crate::cycle`].

use greenroom_runtime::mesh::{AskId, AskNote, Lane, Origin, ResidentId, Route};

use super::{Letter, Mailbox, Parcel, Phase};
use crate::actor::{Actor, Overflow};
use crate::cycle::{Edge, Forward, Probe, Suspects, Verdict, Wait};
use crate::error::Cycle;

/// What the actor is asked.
pub(super) type Probes = Vec<Box<Probe>>;

impl<A: Actor> Mailbox<A> {
    /// How a question gets to the actor, if it is on a shard of the same system.
    pub(crate) fn forward(id: ResidentId<Self>) -> Option<Forward> {
        (id.route() != Route::Outside)
            // An actor whose shard is gone waits for nothing.
            .then(|| Box::new(move |probe| drop(id.post(Parcel::Probe(probe)))) as Forward)
    }

    /// The handler's poll ended, waiting for this call among others; zero for none.
    #[inline]
    pub(crate) fn waits_on(&self, wait: u64) {
        self.waits_on.set(wait);
        if wait != 0 && !self.is_suspect.get() {
            self.become_suspect(wait);
        }
    }

    #[cold]
    fn become_suspect(&self, wait: u64) {
        self.is_suspect.set(true);
        let id = self.id();
        Suspects::list(
            wait,
            Box::new(move |wait| id.visit(|mailbox| mailbox.look(wait)).flatten()),
        );
    }

    /// Says what it waits for now; if that is the same as before, it is going to ask around.
    fn look(&self, wait: u64) -> Option<u64> {
        let now = self.waits_on.get();
        if now == 0 || self.phase.get() == Phase::Closed {
            self.is_suspect.set(false);
            return None;
        }
        if now == wait {
            self.asks_around.set(true);
            self.be_asked();
        }
        Some(now)
    }

    /// Somebody asks what it waits for. A handler that waits for no call has nothing to say.
    pub(super) fn take_probe(&self, probe: Box<Probe>) {
        if self.waits_on.get() != 0 && self.phase.get() != Phase::Closed {
            self.rare().probes.borrow_mut().push(probe);
            self.be_asked();
        }
    }

    /// Has the handler polled soon.
    pub(super) fn be_asked(&self) {
        self.is_asked.set(true);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Whether the handler's next poll is to find out what it waits for.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.get()
    }

    /// The handler waits for one call and nothing else, or it does not. Answers who asked; returns the cycle that this
    /// call closes, if one does.
    pub(crate) fn answer(&self, served: Option<AskNote>, wait: Option<&Wait>) -> Option<Cycle> {
        self.is_asked.set(false);
        let asks_around = self.asks_around.replace(false);
        let probes = match self.rare.get() {
            Some(rare) => rare.probes.take(),
            None => Probes::new(),
        };
        let wait = wait?;
        let number = self.id().number();
        for probe in probes {
            if !self.holds_up(probe.edge, served) {
                continue;
            }
            match probe.judge(number, wait) {
                Verdict::Ends => {}
                Verdict::GoesOn => probe.go_on(wait),
                Verdict::Cycle => return Some(Cycle::new(probe.path)),
            }
        }
        if asks_around {
            wait.send(Probe::begin(number, wait));
        }
        None
    }

    /// Whether what somebody waits for cannot come while the handler waits.
    fn holds_up(&self, edge: Edge, served: Option<AskNote>) -> bool {
        match edge {
            Edge::Answer(ask) => {
                served.and_then(AskNote::ask) == Some(ask)
                    || self.is_owed(ask)
                    || self.is_queued(ask)
            }
            // Whoever waits waits for a link.
            Edge::Room(..) if A::OVERFLOW != Overflow::Wait => false,
            Edge::Room(shard, lane) if greenroom_runtime::current_shard() == Some(shard) => {
                self.is_full(lane)
            }
            Edge::Room(shard, lane) => self.rare.get().is_some_and(|rare| {
                let line = &rare.lines[lane.index()];
                line.choked.borrow().contains(&Origin::Peer(shard))
            }),
        }
    }

    fn is_queued(&self, ask: AskId) -> bool {
        let is_it = |letter: &Letter<A>| letter.ask() == Some(ask);
        let urgent = self.rare.get().map(|rare| rare.urgent.borrow());
        urgent.is_some_and(|urgent| urgent.iter().any(is_it))
            || self.queue.borrow().iter().any(is_it)
    }

    fn is_full(&self, lane: Lane) -> bool {
        self.lane(lane).borrow().len() >= Self::room(lane)
    }
}
