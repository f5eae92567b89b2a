//! The timers of one actor, in the order in which they are due.
//!
//! The actor has one timer in the shard's wheel, for the first of its own. It wakes the actor's task, which looks here
//! before it does anything else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::Pin;
use std::task::{Context, Waker};

use greenroom_runtime::time::{Instant, Sleep, sleep_until};

/// A moment at which an errand is due. Of two at the same moment, the one that was begun first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alarm {
    pub(super) at: Instant,
    pub(super) serial: u64,
    pub(super) slot: u32,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Clock {
    alarms: BinaryHeap<Reverse<Alarm>>,
    /// Alarms of errands that were cancelled. They are left where they are until they are many.
    stale: usize,
    sleep: Option<Sleep>,
}

/// As many stale alarms are never worth a look at all of them.
const STALE_TOLERATED: usize = 64;

impl Clock {
    pub(super) fn set(&mut self, alarm: Alarm, waker: Option<&Waker>) {
        self.alarms.push(Reverse(alarm));
        self.arm(waker);
    }

    /// Takes the next alarm that is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Alarm> {
        let Reverse(next) = *self.alarms.peek()?;
        if next.at > now {
            return None;
        }
        self.alarms.pop();
        Some(next)
    }

    /// One alarm has lost its errand. `is_live` is asked only if it is time to sort such alarms out.
    pub(super) fn forget_one(&mut self, is_live: impl Fn(&Alarm) -> bool) {
        self.stale += 1;
        if self.stale > STALE_TOLERATED && self.stale > self.alarms.len() / 2 {
            self.alarms.retain(|Reverse(alarm)| is_live(alarm));
            self.stale = 0;
        }
    }

    /// An alarm that was taken had lost its errand before.
    pub(super) fn took_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    /// Sees to it that the task is woken when the first alarm is due. A task that was never polled yet arms when it is.
    pub(super) fn arm(&mut self, waker: Option<&Waker>) {
        let (Some(Reverse(next)), Some(waker)) = (self.alarms.peek(), waker) else {
            return;
        };
        // An earlier timer stays: when it fires, the next one is armed.
        let is_armed = self
            .sleep
            .as_ref()
            .is_some_and(|sleep| sleep.deadline() <= next.at);
        if !is_armed {
            let mut sleep = sleep_until(next.at);
            // A deadline that has passed wakes the task in the next turn.
            if Pin::new(&mut sleep)
                .poll(&mut Context::from_waker(waker))
                .is_ready()
            {
                waker.wake_by_ref();
            }
            self.sleep = Some(sleep);
        }
    }

    /// The timer in the wheel has fired, or is not needed any more.
    pub(super) fn disarm_passed(&mut self, now: Instant) {
        if self
            .sleep
            .as_ref()
            .is_some_and(|sleep| sleep.deadline() <= now)
        {
            self.sleep = None;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.alarms.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn alarms_of_cancelled_errands_do_not_pile_up_and_others_stay_in_order() {
        let runtime = greenroom_runtime::Builder::new().shards(1).pin(false);
        let runtime = runtime.start().expect("a shard starts");
        runtime.run_on(0, || async {
            let at = Instant::now() + Duration::from_secs(1);
            let alarm = |serial| Alarm {
                at,
                serial,
                slot: 0,
            };
            let is_kept = |alarm: &Alarm| alarm.serial.is_multiple_of(1000);
            let mut clock = Clock::default();
            for serial in 0..10_000 {
                clock.set(alarm(serial), None);
                if !is_kept(&alarm(serial)) {
                    clock.forget_one(is_kept);
                }
                assert!(clock.alarms.len() <= 2 * STALE_TOLERATED + 10);
            }
            assert_eq!(clock.pop_due(Instant::now()), None);
            let due = std::iter::from_fn(|| clock.pop_due(at)).filter(is_kept);
            assert!(due.map(|alarm| alarm.serial).eq((0..10).map(|n| n * 1000)));
        });
    }
}
