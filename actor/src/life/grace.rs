//! The time an actor has to stop.
//!
//! The shard keeps a list of the actors that were asked to stop while they had something to do, and looks at it now and then:
//! most of them end soon, and are found gone. Those that are there when their time is over are killed.

use std::cell::{Cell, RefCell};
use std::task::{Poll, Waker};
use std::time::Duration;

use greenroom_runtime::JoinHandle;
use greenroom_runtime::time::{self, Instant};

use super::exit::ActorId;
use crate::registry::Registry;

/// How long a stop may take, if nobody said otherwise.
pub(crate) const DEFAULT: Duration = Duration::from_secs(5);

/// How often the list is looked at, at least, so that those which have ended do not pile up in it.
const ROUND: Duration = Duration::from_millis(100);

/// The actors of a shard that are to stop in time.
#[derive(Default)]
pub(crate) struct Graces {
    running: RefCell<Vec<Grace>>,
    /// When the list is looked at next, while there is a task that does it.
    next: Cell<Option<Instant>>,
    waker: Cell<Option<Waker>>,
    watch: Cell<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Grace {
    key: usize,
    id: ActorId,
    until: Instant,
    length: Duration,
}

impl Graces {
    /// An actor has so long from now.
    pub(crate) fn begin(&self, key: usize, id: ActorId, length: Duration) {
        if length == Duration::MAX {
            return;
        }
        let until = Instant::now() + length;
        self.running.borrow_mut().push(Grace {
            key,
            id,
            until,
            length,
        });
        match self.next.get() {
            None => {
                self.next.set(Some(until));
                self.watch.set(Some(greenroom_runtime::spawn(watch())));
            }
            Some(next) if until < next => {
                if let Some(waker) = self.waker.take() {
                    waker.wake();
                }
            }
            Some(_) => {}
        }
    }

    /// Nobody's time runs any more.
    pub(crate) fn end(&self) {
        if let Some(watch) = self.watch.take() {
            watch.abort();
        }
    }

    /// Takes those out whose time is over, and forgets those that `is_there` does not find.
    fn look(&self, is_there: impl Fn(usize, ActorId) -> bool) -> Vec<Grace> {
        let now = Instant::now();
        let mut over = Vec::new();
        let mut running = self.running.borrow_mut();
        for grace in std::mem::take(&mut *running) {
            if !is_there(grace.key, grace.id) {
                continue;
            }
            if grace.until <= now {
                over.push(grace);
            } else {
                running.push(grace);
            }
        }
        over
    }

    /// When to look again; `None` if there is nothing to look at.
    fn rearm(&self) -> Option<Instant> {
        let running = self.running.borrow();
        let next = running.iter().map(|grace| grace.until).min();
        let next = next.map(|next| next.min(Instant::now() + ROUND));
        self.next.set(next);
        next
    }
}

/// Looks at the list until it is empty.
async fn watch() {
    let Some(registry) = Registry::current() else {
        return;
    };
    let graces = registry.graces();
    loop {
        for grace in graces.look(|key, id| registry.find(key, id).is_some()) {
            // Found anew: one kill may end another.
            if let Some(actor) = registry.find(grace.key, grace.id) {
                actor.expire(grace.length);
            }
        }
        let Some(next) = graces.rearm() else {
            return;
        };
        let mut sleep = std::pin::pin!(time::sleep_until(next));
        let mut is_called = false;
        std::future::poll_fn(|cx| {
            if is_called {
                return Poll::Ready(());
            }
            is_called = true;
            graces.waker.set(Some(cx.waker().clone()));
            sleep.as_mut().poll(cx)
        })
        .await;
    }
}
