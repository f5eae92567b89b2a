//! What a shard does between turns: spin, announce its sleep, sleep in the kernel, reap.
//!
//! The order is what keeps a sleep from missing news: everything written is published before, the handshake is asked
//! last, and only its yes lets the thread block (see [`crate::inject::handshake`]).

use std::time::Duration;

use super::Shard;
use crate::float::Help;
use crate::observe::hooks::ShardMoment;
use crate::ring::{Effects, Wait};

/// How a shard that had nothing ready went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Awake,
    Slept,
}

impl Shard {
    /// Nothing is ready: rest, and tell those who want to know.
    pub(super) fn park(&self, effects: &mut Effects) -> Rest {
        if self.hooks().is_some() {
            self.hook_shard(ShardMoment::Park);
            // What the hook did leaves before the sleep, as if a task had done it.
            self.bury_all();
            self.publish();
        }
        let rest = if self.is_idle() {
            self.rest(effects)
        } else {
            self.enter(Wait::Poll, effects);
            Rest::Awake
        };
        self.hook_shard(ShardMoment::Unpark);
        rest
    }

    /// Sleeps until a completion, a doorbell or a timer; spins first if that was asked for.
    fn rest(&self, effects: &mut Effects) -> Rest {
        let now_ns = self.clock.now_ns();
        self.pace.close(now_ns);
        let next = self.timers.borrow_mut().next_deadline_ns();
        let wait = next.map(|next| Duration::from_nanos(next.saturating_sub(now_ns)));
        if wait == Some(Duration::ZERO) {
            self.enter(Wait::Poll, effects);
            return Rest::Awake;
        }
        let help = self.help_siblings();
        if help == Help::Needed || (!self.spin.is_zero() && self.spin_for_news(wait)) {
            self.enter(Wait::Poll, effects);
            return Rest::Awake;
        }
        if self.shared().handshake.prepare_sleep() {
            let wait = if help == Help::NotNeeded && self.is_help_needed() {
                Wait::Poll
            } else {
                Wait::Until(wait)
            };
            let start_ns = self.clock.now_ns();
            self.enter(wait, effects);
            self.finish_sleep();
            self.counters.parks.add(1);
            self.counters
                .parked_ns
                .add(self.clock.now_ns().saturating_sub(start_ns));
            self.pace.unsettle();
            Rest::Slept
        } else {
            self.enter(Wait::Poll, effects);
            Rest::Awake
        }
    }

    pub(super) fn finish_sleep(&self) {
        if self.shared().handshake.finish_sleep().rung {
            self.rings_owed.set(self.rings_owed.get() + 1);
        }
    }

    /// Watches the inbound word and the ring for a while; true if there is something to do.
    fn spin_for_news(&self, wait: Option<Duration>) -> bool {
        let limit = wait.map_or(self.spin, |wait| wait.min(self.spin));
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = self.clock.now_ns();
        // What is queued for the kernel goes there first, or the spin would wait for completions nobody started.
        if self.driver.borrow().has_unsubmitted() {
            return true;
        }
        loop {
            for _ in 0..32 {
                if self.shared().handshake.has_news()
                    || self.driver.borrow().needs_enter()
                    || self.team.board().has_work_for(self.id.index())
                {
                    return true;
                }
                std::hint::spin_loop();
            }
            if let Some(pulse) = self.pulse() {
                pulse.beat();
            }
            if self.driver.borrow_mut().look() {
                return true;
            }
            if self.clock.now_ns() - start_ns >= limit_ns {
                return false;
            }
        }
    }

    /// One visit to the kernel: submits, waits as told, reaps, and acts on what came back.
    pub(super) fn enter(&self, wait: Wait, effects: &mut Effects) {
        self.counters.enters.add(1);
        let result = self.driver.borrow_mut().turn(wait, effects);
        if let Err(error) = result {
            // The ring itself is broken: no operation of this shard can complete any more.
            panic!("the I/O backend of {} failed: {error}", self.id);
        }
        self.contain(|| effects.run());
    }
}
