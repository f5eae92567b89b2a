//! What a shard counts of the actors of one type.

use std::cell::Cell;
use std::time::Duration;

use greenroom_runtime::time::Instant;

use super::metrics::TypeMetrics;

/// One for each type and shard; every actor of the type has a share in it, so that counting looks nothing up.
#[derive(Debug)]
pub(crate) struct Tally {
    actor: &'static str,
    /// Whether time is taken.
    is_timed: bool,
    live: Cell<usize>,
    started: Cell<u64>,
    restarted: Cell<u64>,
    failed: Cell<u64>,
    handled: Cell<u64>,
    errors: Cell<u64>,
    dead_letters: Cell<u64>,
    busy: Cell<Duration>,
}

impl Tally {
    pub(crate) fn new(actor: &'static str, is_timed: bool) -> Self {
        Self {
            actor,
            is_timed,
            live: Cell::default(),
            started: Cell::default(),
            restarted: Cell::default(),
            failed: Cell::default(),
            handled: Cell::default(),
            errors: Cell::default(),
            dead_letters: Cell::default(),
            busy: Cell::default(),
        }
    }

    /// An actor begins.
    pub(crate) fn begin_actor(&self) {
        self.live.set(self.live.get() + 1);
        count(&self.started);
    }

    /// It has ended.
    pub(crate) fn end_actor(&self) {
        self.live.set(self.live.get() - 1);
    }

    /// Another incarnation of one begins.
    pub(crate) fn restart(&self) {
        count(&self.restarted);
    }

    /// An incarnation fails.
    pub(crate) fn fail(&self) {
        count(&self.failed);
    }

    /// A handler begins.
    #[inline]
    pub(crate) fn handle(&self) {
        count(&self.handled);
    }

    /// A handler did not begin after all.
    pub(crate) fn take_back(&self) {
        self.handled.set(self.handled.get() - 1);
    }

    /// A handler has returned an error.
    pub(crate) fn err(&self) {
        count(&self.errors);
    }

    pub(crate) fn dead_letter(&self) {
        count(&self.dead_letters);
    }

    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Takes the time until it is dropped, if that is wanted.
    #[inline]
    pub(crate) fn time(&self) -> Option<Timed<'_>> {
        self.is_timed.then(|| self.begin_time())
    }

    #[cold]
    fn begin_time(&self) -> Timed<'_> {
        Timed {
            tally: self,
            begun: Instant::now(),
        }
    }

    pub(crate) fn metrics(&self) -> TypeMetrics {
        let busy = self.is_timed.then(|| self.busy.get().as_nanos());
        TypeMetrics {
            actor: self.actor,
            live: self.live.get(),
            started: self.started.get(),
            restarted: self.restarted.get(),
            failed: self.failed.get(),
            handled: self.handled.get(),
            errors: self.errors.get(),
            dead_letters: self.dead_letters.get(),
            busy_ns: busy.map(|ns| u64::try_from(ns).unwrap_or(u64::MAX)),
        }
    }
}

#[inline]
fn count(what: &Cell<u64>) {
    what.set(what.get() + 1);
}

/// A piece of an actor's work, from its begin to its drop.
#[derive(Debug)]
pub(crate) struct Timed<'a> {
    tally: &'a Tally,
    begun: Instant,
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        let took = Instant::now() - self.begun;
        self.tally.busy.set(self.tally.busy.get() + took);
    }
}
