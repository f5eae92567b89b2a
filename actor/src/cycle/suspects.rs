//! The actors of a shard whose handlers wait for other actors, to be looked at when they have waited long.
//!
//! An actor is listed once, however often its handlers wait. When its time comes it is looked at: one that waits no more
//! leaves the list, one that waits for something else has its time put off, and one that waits for the same is asked. After
//! each time it is asked it is left alone for twice as long, so that a long wait costs nothing in the end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_runtime::time::{Alarm, Instant};

/// How long a wait lasts before it is looked at.
const PATIENCE: Duration = Duration::from_millis(64);

/// Looks at an actor that waited for this; says what it waits for now, and whether it was asked.
pub(crate) type Look = Box<dyn Fn(u64) -> Option<u64>>;

/// An actor whose handler waits.
pub(crate) struct Suspect {
    wait: u64,
    pause: Duration,
    look: Look,
}

/// One per shard, in the runtime's extensions.
#[derive(Default)]
pub(crate) struct Suspects {
    waiting: RefCell<BTreeMap<(Instant, u64), Suspect>>,
    listed: Cell<u64>,
    alarm: Alarm,
}

impl Suspects {
    /// Lists an actor that waits for this.
    pub(crate) fn list(wait: u64, look: Look) {
        let suspect = Suspect {
            wait,
            pause: PATIENCE,
            look,
        };
        let suspects = greenroom_runtime::extension(Self::default);
        suspects.insert(suspect);
        suspects.set_alarm();
    }

    fn insert(&self, suspect: Suspect) {
        let number = self.listed.replace(self.listed.get() + 1);
        let at = Instant::after(suspect.pause);
        self.waiting.borrow_mut().insert((at, number), suspect);
    }

    fn set_alarm(&self) {
        let first = self.waiting.borrow().keys().next().map(|(at, _)| *at);
        if let Some(first) = first {
            self.alarm.set_by(first, Self::ring);
        }
    }

    fn ring() {
        let suspects = greenroom_runtime::extension(Self::default);
        let later = suspects
            .waiting
            .borrow_mut()
            .split_off(&(Instant::now(), u64::MAX));
        let due = suspects.waiting.replace(later);
        for mut suspect in due.into_values() {
            match (suspect.look)(suspect.wait) {
                None => continue,
                Some(wait) if wait == suspect.wait => suspect.pause *= 2,
                Some(wait) => {
                    suspect.wait = wait;
                    suspect.pause = PATIENCE;
                }
            }
            suspects.insert(suspect);
        }
        suspects.set_alarm();
    }
}
