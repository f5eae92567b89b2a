//! The actors of one shard, as far as the system needs to know them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc;
use std::task::{Poll, Waker};

use slab::Slab;

/// An actor, whatever its type.
pub(crate) trait AnyActor {
    fn name(&self) -> &'static str;
    fn stop(&self);
    fn kill(&self);
    fn queued(&self) -> usize;
}

/// One per shard, in the runtime's extensions.
#[derive(Default)]
pub(crate) struct Registry {
    actors: RefCell<Slab<Rc<dyn AnyActor>>>,
    /// Messages that reached nobody, or were handed back by an end.
    dead_letters: Cell<u64>,
    /// Errors of told messages, which nobody waited for.
    told_errors: Cell<u64>,
    /// Actors that ended by a panic.
    panics: Cell<u64>,
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

    pub(crate) fn count_dead_letters(&self, count: usize) {
        self.dead_letters
            .set(self.dead_letters.get() + count as u64);
    }

    pub(crate) fn count_told_error(&self) {
        self.told_errors.set(self.told_errors.get() + 1);
    }

    pub(crate) fn count_panic(&self) {
        self.panics.set(self.panics.get() + 1);
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
        }
    }
}

/// What a shard has counted about its actors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Actors alive.
    pub actors: usize,
    /// Messages that reached no actor or were given up by one that ended. Their askers, if any, got an error.
    pub dead_letters: u64,
    /// Errors returned by handlers of told messages, for which nobody waited.
    pub told_errors: u64,
    /// Actors that were ended by a panic.
    pub panics: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            actors: self.actors + other.actors,
            dead_letters: self.dead_letters + other.dead_letters,
            told_errors: self.told_errors + other.told_errors,
            panics: self.panics + other.panics,
        }
    }
}
