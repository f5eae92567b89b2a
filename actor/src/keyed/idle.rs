//! When an instance goes: it was not called for a while, and has nothing to do.
//!
//! Each instance is looked at four times in its idle time. One that was called since the last look, or is busy, begins anew;
//! one that was found idle four times in a row is stopped. So a call costs a flag, not a look at the clock.

use std::collections::VecDeque;
use std::hash::Hash;
use std::time::Duration;

use greenroom_runtime::mesh::ResidentId;
use greenroom_runtime::time::{self, Instant};

use super::keeper::Keeper;
use crate::actor::Actor;

/// Looks in an idle time.
const LOOKS: u8 = 4;
/// Between two looks, however short the idle time is: a task that never sleeps would be no idle system.
const SHORTEST: Duration = Duration::from_millis(1);
/// Instances that are looked at before other tasks have their turn.
const AT_ONCE: usize = 256;

/// The instances of a keeper, in the order in which they are to be looked at: all are looked at in the same intervals.
#[derive(Default)]
pub(super) struct Watched {
    due: VecDeque<Due>,
    /// A task looks at them.
    is_awake: bool,
}

#[derive(Clone, Copy)]
struct Due {
    at: Instant,
    hash: u64,
    /// Of the mailbox, so that a successor is another instance.
    number: u64,
    found_idle: u8,
}

/// What to do after some looks.
enum Next {
    Yield,
    Sleep(Instant),
    /// There is nothing to look at.
    End,
}

impl<K: Hash + Eq + Send + 'static, A: Actor> Keeper<K, A> {
    fn interval(&self) -> Option<Duration> {
        Some((self.idle? / u32::from(LOOKS)).max(SHORTEST))
    }

    /// Begins to watch an instance.
    pub(super) fn watch(&self, hash: u64, number: u64) {
        let Some(interval) = self.interval() else {
            return;
        };
        let mut watched = self.watched.borrow_mut();
        watched.due.push_back(Due {
            at: Instant::now() + interval,
            hash,
            number,
            found_idle: 0,
        });
        if !std::mem::replace(&mut watched.is_awake, true) {
            drop(watched);
            greenroom_runtime::spawn(look_after(self.id())).detach();
        }
    }

    fn look(&self) -> Next {
        let Some(interval) = self.interval() else {
            return Next::End;
        };
        let now = Instant::now();
        for _ in 0..AT_ONCE {
            let mut watched = self.watched.borrow_mut();
            let Some(first) = watched.due.front() else {
                watched.is_awake = false;
                return Next::End;
            };
            if first.at > now {
                return Next::Sleep(first.at);
            }
            let due = watched.due.pop_front();
            drop(watched);
            let again = due.and_then(|due| self.look_at(due));
            if let Some(again) = again {
                let again = Due {
                    at: now + interval,
                    ..again
                };
                self.watched.borrow_mut().due.push_back(again);
            }
        }
        Next::Yield
    }

    /// Looks at an instance, and stops it if its time is over; gives it back if it is to be looked at again.
    fn look_at(&self, due: Due) -> Option<Due> {
        let (mailbox, was_called) = self.occupant(due.hash, due.number)?;
        if !mailbox.is_open() {
            return None;
        }
        let found_idle = if was_called || !mailbox.is_idle() {
            0
        } else {
            due.found_idle + 1
        };
        if found_idle >= LOOKS {
            // Its queue is empty, and nobody waits: nothing is refused by this stop.
            mailbox.stop();
            return None;
        }
        Some(Due { found_idle, ..due })
    }
}

async fn look_after<K: Hash + Eq + Send + 'static, A: Actor>(keeper: ResidentId<Keeper<K, A>>) {
    // Ends with the keeper, or when there is nothing to look at.
    while let Some(next) = keeper.visit(Keeper::look) {
        match next {
            Next::End => return,
            Next::Yield => greenroom_runtime::yield_now().await,
            Next::Sleep(until) => time::sleep_until(until).await,
        }
    }
}
