//! Whether a shard that goes to sleep wakes up for the first completion or for several.
//!
//! A sleep and a wake-up cost more than many a completion. Where completions come in bunches, a shard that sleeps until
//! a few of them are there does the same work with fewer wake-ups, at the price of a delay that has a bound: the window.
//!
//! It waits for no more than it has reason to expect. A bunch that was complete within the window lets the next one be
//! half as large again; one that was not sets the number back to what did come. A shard whose completions come one by
//! one never waits for a second, because nothing has ever shown it that there may be one: a client that sends a request
//! at a time is answered as fast as without. When one comes alone after all, and when another thread rings the doorbell,
//! the shard wakes up for the first completion of each of the next sleeps, for more of them each time.

use std::cell::Cell;
use std::time::Duration;

use crate::ring::Wait;

/// The most completions one sleep waits for.
const COUNT_MAX: u32 = 32;
/// Sleeps without a try after the first that came to nothing, and the most of them.
const PAUSE_MIN: u32 = 16;
const PAUSE_MAX: u32 = 4096;

/// How many completions the next sleep waits for, and what was learned from those before.
#[derive(Debug)]
pub(super) struct Gather {
    /// The longest delay of a completion; zero if none is wanted.
    window: Duration,
    /// Invariant: 1 to [`COUNT_MAX`].
    count: Cell<u32>,
    /// Sleeps to come that wait for one completion.
    pause_left: Cell<u32>,
    /// The length of the next pause.
    pause: Cell<u32>,
}

impl Gather {
    pub(super) fn new(window: Duration) -> Self {
        Self {
            window,
            count: Cell::new(1),
            pause_left: Cell::new(0),
            pause: Cell::new(PAUSE_MIN),
        }
    }

    /// What the next sleep waits for. A timer that is due within the window is not kept waiting.
    pub(super) fn plan(&self, until: Option<Duration>) -> Wait {
        let (count, window) = (self.count.get(), self.window);
        if count > 1 && until.is_none_or(|until| until > window) {
            Wait::Gather {
                count,
                window,
                until,
            }
        } else {
            Wait::Until(until)
        }
    }

    /// Waits for the first completion only, for a while: one came alone, or another thread rang the doorbell. What other
    /// shards send is not to be kept waiting for the network.
    pub(super) fn pause(&self) {
        self.count.set(1);
        self.pause_left.set(self.pause.get());
        self.pause.set((self.pause.get() * 2).min(PAUSE_MAX));
    }

    /// A sleep ended with this many completions. It was to end with as many as planned, or when the window was over.
    pub(super) fn learn(&self, came: u32, wait: Wait) {
        if self.window.is_zero() || wait == Wait::Poll {
            return;
        }
        let left = self.pause_left.get();
        if left > 0 {
            self.pause_left.set(left - 1);
            return;
        }
        let count = match wait {
            Wait::Gather { count, .. } if came < count => {
                if came < 2 {
                    return self.pause();
                }
                came
            }
            Wait::Gather { count, .. } => {
                self.pause.set(PAUSE_MIN);
                count + count.div_ceil(2)
            }
            // Several came in a bunch without having been waited for.
            Wait::Until(_) | Wait::Poll => came,
        };
        self.count.set(count.clamp(1, COUNT_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_micros(50);
    const UNTIL: Wait = Wait::Until(None);

    fn planned(gather: &Gather) -> u32 {
        match gather.plan(None) {
            Wait::Gather { count, .. } => count,
            Wait::Until(_) | Wait::Poll => 1,
        }
    }

    /// One sleep on a shard where at most so many completions can come within the window. Returns how many it waited for.
    fn sleep(gather: &Gather, available: u32) -> u32 {
        let count = planned(gather);
        gather.learn(count.min(available), gather.plan(None));
        count
    }

    #[test]
    fn completions_that_come_one_by_one_are_never_waited_for() {
        let gather = Gather::new(WINDOW);
        for _ in 0..1000 {
            assert_eq!(sleep(&gather, 1), 1);
        }
    }

    #[test]
    fn bunches_are_waited_for_and_grow_to_the_bound() {
        let gather = Gather::new(WINDOW);
        gather.learn(2, UNTIL);
        for _ in 0..20 {
            sleep(&gather, u32::MAX);
        }
        assert_eq!(planned(&gather), COUNT_MAX);
    }

    #[test]
    fn no_more_is_waited_for_than_came_last() {
        let gather = Gather::new(WINDOW);
        gather.learn(20, UNTIL);
        assert_eq!(sleep(&gather, 5), 20);
        assert_eq!(sleep(&gather, 5), 5);
    }

    #[test]
    fn waits_in_vain_become_rare() {
        let gather = Gather::new(WINDOW);
        let mut in_vain = 0;
        for _ in 0..10_000 {
            // Two at once whenever it does not wait, and one alone whenever it does.
            if planned(&gather) == 1 {
                gather.learn(2, UNTIL);
            } else {
                in_vain += 1;
                sleep(&gather, 1);
            }
        }
        assert!(in_vain < 12, "{in_vain} of 10000");
    }

    #[test]
    fn a_doorbell_ends_the_waiting_for_a_while() {
        let gather = Gather::new(WINDOW);
        gather.learn(8, UNTIL);
        gather.pause();
        for _ in 0..PAUSE_MIN {
            assert_eq!(planned(&gather), 1);
            gather.learn(8, UNTIL);
        }
        gather.learn(8, UNTIL);
        assert_eq!(planned(&gather), 8);
    }

    #[test]
    fn a_timer_within_the_window_is_not_kept_waiting() {
        let gather = Gather::new(WINDOW);
        gather.learn(8, UNTIL);
        assert_eq!(gather.plan(Some(WINDOW)), Wait::Until(Some(WINDOW)));
        assert_ne!(gather.plan(Some(WINDOW * 2)), Wait::Until(Some(WINDOW * 2)));
    }

    #[test]
    fn a_window_of_zero_waits_for_the_first_completion() {
        let gather = Gather::new(Duration::ZERO);
        gather.learn(20, UNTIL);
        assert_eq!(gather.plan(None), UNTIL);
    }
}
