//! The actors of one shard, as far as the system needs to know them.

use std::any::TypeId;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::time::Duration;

use greenroom_runtime::time::Instant;
use slab::Slab;

use crate::actor::Actor;
use crate::life::{
    ActorId, Alarm, DEFAULT_GRACE, Down, Graces, OnRootFailure, contain, note_root_failure,
};
use crate::observe::{ActorSnapshot, DeadLetterHook, Tally};
use crate::shutdown::Killed;
use crate::system::Handle;

/// How many failures without a parent a shard remembers.
const ROOT_FAILURES_KEPT: usize = 16;

/// An actor, whatever its type.
pub(crate) trait AnyActor {
    fn id(&self) -> ActorId;
    fn name(&self) -> &'static str;
    /// Whether it has no parent.
    fn is_root(&self) -> bool;
    fn stop(&self);
    /// Kills it as its time to stop is over, unless it waits for its children, which have their own time.
    fn expire(&self, grace: Duration);
    /// Kills it as the time of all is over.
    fn kill_overdue(&self, grace: Duration);
    fn queued(&self) -> usize;
    fn inspect(&self) -> ActorSnapshot;
    /// Has its handlers say which calls they wait for; false if they wait for none.
    fn ask_waits(&self) -> bool;
    fn owes_waits(&self) -> bool;
    /// Whether it has nothing to do.
    fn is_quiet(&self) -> bool;
    /// The method whose handler waits, and for how long.
    fn waits_in(&self) -> (Option<&'static str>, Option<Duration>);
}

/// What was chosen for a system, where each shard finds it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) stop_grace: Duration,
    pub(crate) on_root_failure: OnRootFailure,
    /// Rung when a failure is to end the system.
    pub(crate) alarm: Arc<Alarm>,
    pub(crate) on_dead_letter: Option<DeadLetterHook>,
    /// Whether the time is taken that handlers run.
    pub(crate) is_busy_time_measured: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stop_grace: DEFAULT_GRACE,
            on_root_failure: OnRootFailure::GoOn,
            alarm: Arc::default(),
            on_dead_letter: None,
            is_busy_time_measured: false,
        }
    }
}

/// One per shard, in the runtime's extensions.
#[derive(Default)]
pub(crate) struct Registry {
    actors: RefCell<Slab<Rc<dyn AnyActor>>>,
    tallies: RefCell<BTreeMap<TypeId, Rc<Tally>>>,
    /// Messages that reached nobody, or were handed back by an end.
    dead_letters: Cell<u64>,
    /// Errors of told messages, which nobody waited for.
    told_errors: Cell<u64>,
    /// Panics of handlers and hooks.
    panics: Cell<u64>,
    restarts: Cell<u64>,
    settings: RefCell<Settings>,
    graces: Graces,
    epoch: OnceCell<Instant>,
    is_shutting_down: Cell<bool>,
    /// Those that did not stop in time while the system shut down.
    killed: RefCell<Vec<Killed>>,
    /// Failures that no parent heard of, the first ones.
    root_failures: RefCell<Vec<Down>>,
    /// Asks that were given up before their handlers began.
    skipped: Cell<u64>,
    /// Who waits for the last actor to end.
    emptied: Cell<Option<Waker>>,
    /// Who gets the last word of this registry, when its shard has ended.
    heir: Cell<Option<mpsc::Sender<Counts>>>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        if let Some(heir) = self.heir.take() {
            // It may not wait any more.
            let _unheard = heir.send(self.counts());
        }
    }
}

impl Registry {
    /// The current shard's registry; `None` on a thread that is no shard.
    pub(crate) fn current() -> Option<Rc<Self>> {
        greenroom_runtime::current_shard().map(|_| greenroom_runtime::extension(Self::default))
    }

    pub(crate) fn with<R>(f: impl FnOnce(&Self) -> R) -> Option<R> {
        Self::current().map(|registry| f(&registry))
    }

    pub(crate) fn insert(&self, actor: Rc<dyn AnyActor>) -> usize {
        self.actors.borrow_mut().insert(actor)
    }

    pub(crate) fn remove(&self, key: usize) {
        let removed = self.actors.borrow_mut().try_remove(key);
        drop(removed);
        if self.actors.borrow().is_empty()
            && let Some(waker) = self.emptied.take()
        {
            waker.wake();
        }
    }

    /// The actor with that key, if it is still the same one.
    pub(crate) fn find(&self, key: usize, id: ActorId) -> Option<Rc<dyn AnyActor>> {
        let actors = self.actors.borrow();
        actors.get(key).filter(|actor| actor.id() == id).cloned()
    }

    pub(crate) fn actors(&self) -> Vec<Rc<dyn AnyActor>> {
        self.actors
            .borrow()
            .iter()
            .map(|(_, actor)| actor.clone())
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.actors.borrow().len()
    }

    /// Waits until no actor is left. One waiter at a time.
    pub(crate) async fn until_empty(&self) {
        std::future::poll_fn(|cx| {
            if self.actors.borrow().is_empty() {
                return Poll::Ready(());
            }
            self.emptied.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// What is counted of the actors of a type.
    pub(crate) fn tally<A: Actor>(&self) -> Rc<Tally> {
        if let Some(tally) = self.tallies.borrow().get(&TypeId::of::<A>()) {
            return tally.clone();
        }
        let is_timed = self.settings.borrow().is_busy_time_measured;
        let tally = Rc::new(Tally::new(A::NAME, is_timed));
        let mut tallies = self.tallies.borrow_mut();
        tallies.insert(TypeId::of::<A>(), tally.clone());
        tally
    }

    pub(crate) fn tallies(&self) -> Vec<Rc<Tally>> {
        self.tallies.borrow().values().cloned().collect()
    }

    pub(crate) fn count_dead_letters(&self, count: usize) {
        self.dead_letters
            .set(self.dead_letters.get() + count as u64);
    }

    pub(crate) fn dead_letter_hook(&self) -> Option<DeadLetterHook> {
        self.settings.borrow().on_dead_letter.clone()
    }

    pub(crate) fn count_told_error(&self) {
        self.told_errors.set(self.told_errors.get() + 1);
    }

    /// Milliseconds since the first call, which wrap after 49 days.
    pub(crate) fn age_ms(&self) -> u32 {
        let age = Instant::now() - *self.epoch.get_or_init(Instant::now);
        #[expect(clippy::cast_possible_truncation, reason = "said above")]
        {
            age.as_millis() as u32
        }
    }

    pub(crate) fn configure(&self, settings: Settings) {
        self.settings.replace(settings);
    }

    pub(crate) fn graces(&self) -> &Graces {
        &self.graces
    }

    pub(crate) fn stop_grace(&self) -> Duration {
        self.settings.borrow().stop_grace
    }

    pub(crate) fn begin_shutdown(&self) {
        self.is_shutting_down.set(true);
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.is_shutting_down.get()
    }

    /// Remembers an actor that did not stop in time, for the report of the shutdown.
    pub(crate) fn note_killed(&self, killed: Killed) {
        self.killed.borrow_mut().push(killed);
    }

    pub(crate) fn take_killed(&self) -> Vec<Killed> {
        self.killed.take()
    }

    pub(crate) fn take_root_failures(&self) -> Vec<Down> {
        self.root_failures.take()
    }

    /// An actor without a parent has failed.
    pub(crate) fn root_failed(&self, down: &Down) {
        note_root_failure(down);
        {
            let mut failures = self.root_failures.borrow_mut();
            if failures.len() < ROOT_FAILURES_KEPT {
                failures.push(down.clone());
            }
        }
        let Settings {
            on_root_failure,
            alarm,
            ..
        } = self.settings.borrow().clone();
        match on_root_failure {
            OnRootFailure::GoOn => {}
            OnRootFailure::Call(hook) => contain(|| hook(down)),
            OnRootFailure::StopSystem => {
                if let Some(system) = Handle::current() {
                    system.stop_all();
                }
                alarm.ring();
            }
        }
    }

    pub(crate) fn count_restart(&self) {
        self.restarts.set(self.restarts.get() + 1);
    }

    pub(crate) fn count_panic(&self) {
        self.panics.set(self.panics.get() + 1);
    }

    pub(crate) fn count_skipped(&self) {
        self.skipped.set(self.skipped.get() + 1);
    }

    /// Sends the counts once more when the shard has dropped everything that could change them.
    pub(crate) fn bequeath(&self, heir: mpsc::Sender<Counts>) {
        self.heir.set(Some(heir));
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            actors: self.len(),
            dead_letters: self.dead_letters.get(),
            told_errors: self.told_errors.get(),
            panics: self.panics.get(),
            restarts: self.restarts.get(),
            skipped: self.skipped.get(),
        }
    }
}

/// What a shard has counted about its actors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// Actors alive.
    pub actors: usize,
    /// Messages that reached no actor or were given up by one that ended. Their askers, if any, got an error.
    pub dead_letters: u64,
    /// Errors returned by handlers of told messages, for which nobody waited.
    pub told_errors: u64,
    /// Panics of handlers and hooks, each of which ended an actor or an incarnation of one.
    pub panics: u64,
    /// Incarnations that followed another one.
    pub restarts: u64,
    /// Asks that were dropped, or whose time was over, before their handlers began: those did not run.
    pub skipped: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            actors: self.actors + other.actors,
            dead_letters: self.dead_letters + other.dead_letters,
            told_errors: self.told_errors + other.told_errors,
            panics: self.panics + other.panics,
            restarts: self.restarts + other.restarts,
            skipped: self.skipped + other.skipped,
        }
    }
}
