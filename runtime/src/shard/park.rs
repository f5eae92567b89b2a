//! What a shard does between turns: spin, announce its sleep, sleep in the kernel, reap.
//!
//! The order is what keeps a sleep from missing news: everything written is published before, the handshake is asked
//! last, and only its yes lets the thread block (see [`crate::inject::handshake`]).

use std::time::Duration;

use super::Shard;
use crate::clock::nanos;
use crate::float::Help;
use crate::observe::hooks::ShardMoment;
use crate::observe::trace;
use crate::ring::{Effects, Wait};

/// How a shard that had nothing ready went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Awake,
    Slept,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// Another thread rang the doorbell, or is about to.
    Rung,
    Otherwise,
}

/// How a spin ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spun {
    /// There is something to do.
    News,
    /// There was nothing for so long; zero if the shard did not spin. Nothing is said of how news comes if there was
    /// nobody to wait for.
    InVain { ns: Option<u64> },
}

/// What ended a spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// Another thread has sent something.
    Announced,
    /// The kernel has something, or there is work that any shard may do.
    Other,
}

/// Looks of a spin between two looks at the clock.
const LOOKS_PER_CLOCK: usize = 32;

impl Shard {
    /// Nothing is ready: rest, and tell those who want to know.
    pub(super) fn park(&self, effects: &mut Effects) -> Rest {
        if self.hooks().is_some() | trace::parking(self.id) {
            self.hook_shard(ShardMoment::Park);
            // What the hook or the subscriber did leaves before the sleep, as if a task had done it.
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
        trace::unparked(self.id);
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
        let spun = match help {
            Help::Needed => Spun::News,
            _ => self.spin_for_news(now_ns, wait),
        };
        let Spun::InVain { ns: spun_ns } = spun else {
            self.enter(Wait::Poll, effects);
            return Rest::Awake;
        };
        if self.shared().handshake.prepare_sleep() {
            let wait = if help == Help::NotNeeded && self.is_help_needed() {
                Wait::Poll
            } else {
                self.gather.plan(wait)
            };
            let start_ns = self.clock.now_ns();
            let came = self.enter(wait, effects);
            if self.finish_sleep() == Woken::Rung {
                self.gather.pause();
            } else {
                self.gather.learn(came, wait);
            }
            let end_ns = self.clock.now_ns();
            let slept_ns = end_ns.saturating_sub(start_ns);
            self.counters.parks.add(1);
            self.counters.parked_ns.add(slept_ns);
            if let Some(spun_ns) = spun_ns
                && next.is_none_or(|next| end_ns < next)
            {
                self.spin.slept(spun_ns, slept_ns);
            }
            self.pace.unsettle();
            Rest::Slept
        } else {
            self.enter(Wait::Poll, effects);
            Rest::Awake
        }
    }

    pub(super) fn finish_sleep(&self) -> Woken {
        if self.shared().handshake.finish_sleep().rung {
            self.rings_owed.set(self.rings_owed.get() + 1);
            Woken::Rung
        } else {
            Woken::Otherwise
        }
    }

    /// Watches the inbound word and the ring for a while, if that is wanted and has been worth it lately.
    fn spin_for_news(&self, start_ns: u64, wait: Option<Duration>) -> Spun {
        if !self.spin.is_for_peers() {
            return self.spin_until(start_ns, wait);
        }
        if !self.is_peer_at_work() {
            return Spun::InVain { ns: None };
        }
        self.shared().set_watching(true);
        let spun = self.spin_until(start_ns, wait);
        self.shared().set_watching(false);
        spun
    }

    /// Whether something may come of a peer that this shard has to do with.
    fn is_peer_at_work(&self) -> bool {
        let peers = [self.heard_from.get(), self.told.get()];
        let mut peers = peers.into_iter().flatten();
        peers.any(|peer| self.team.shared(peer).is_at_work())
    }

    fn spin_until(&self, start_ns: u64, wait: Option<Duration>) -> Spun {
        let Some(limit_ns) = self.spin.begin() else {
            return Spun::InVain { ns: Some(0) };
        };
        // What is queued for the kernel goes there first, or the spin would wait for completions nobody started.
        if self.driver.borrow().has_unsubmitted() {
            return Spun::News;
        }
        let wait_ns = wait.map_or(u64::MAX, nanos);
        let mut last_ns = start_ns;
        loop {
            for _ in 0..LOOKS_PER_CLOCK {
                if let Some(news) = self.look_for_news() {
                    return self.catch(news, last_ns - start_ns);
                }
                std::hint::spin_loop();
            }
            if let Some(pulse) = self.pulse() {
                pulse.beat();
            }
            if self.driver.borrow_mut().look() {
                return self.catch(News::Other, last_ns - start_ns);
            }
            let now_ns = self.clock.now_ns();
            let spun_ns = now_ns - start_ns;
            if spun_ns >= wait_ns {
                // The timer was known: this says nothing of how news comes.
                return Spun::News;
            }
            if self.spin.is_interrupted(now_ns - last_ns) || spun_ns >= limit_ns {
                self.counters.spins_missed.add(1);
                return Spun::InVain { ns: Some(spun_ns) };
            }
            if self.spin.is_for_peers() && !self.is_peer_at_work() {
                // Not missed: it was right to wait until then.
                return Spun::InVain { ns: None };
            }
            last_ns = now_ns;
        }
    }

    fn catch(&self, news: News, spun_ns: u64) -> Spun {
        self.counters.spins_paid.add(1);
        if news == News::Other && self.spin.is_for_peers() {
            self.spin.disturbed();
        } else {
            self.spin.caught(spun_ns);
        }
        Spun::News
    }

    fn look_for_news(&self) -> Option<News> {
        if self.shared().handshake.has_news() {
            return Some(News::Announced);
        }
        let other =
            self.driver.borrow().needs_enter() || self.team.board().has_work_for(self.id.index());
        other.then_some(News::Other)
    }

    /// One visit to the kernel: submits, waits as told, reaps, and acts on what came back. Returns how many completions
    /// that was.
    pub(super) fn enter(&self, wait: Wait, effects: &mut Effects) -> u32 {
        self.counters.enters.add(1);
        let result = self.driver.borrow_mut().turn(wait, effects);
        let came = result.unwrap_or_else(|error| {
            // The ring itself is broken: no operation of this shard can complete any more.
            panic!("the I/O backend of {} failed: {error}", self.id)
        });
        self.contain(|| effects.run());
        came
    }
}
