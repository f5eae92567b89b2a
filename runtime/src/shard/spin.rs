//! Whether a shard that has nothing to do watches for news before it sleeps.
//!
//! A wake-up costs tens of microseconds, a spin that catches the news costs none; but a spin that catches nothing is
//! burnt. So the shard keeps a mean of how long its pauses are, and spins only while that is within the limit. A pause
//! that it sleeps through counts too, less the cost of the wake-up: that is how it finds out that news has become
//! frequent. One spin in a while is lost that way, on a shard whose pauses are a little longer than the limit.
//!
//! A shard that nobody told to spin for whatever may come watches for its peers only, and only while one of those that it
//! has to do with is at work: from one that sleeps, or watches itself, nothing comes. So in a system that has nothing to do
//! nobody spins. Of its pauses the mean has those that could have ended with a message of a peer; one that something else
//! ended counts as too long.
//!
//! A thread that spins keeps its CPU from others. It notices: time passes between two looks at the clock that its few
//! instructions cannot have taken. Then it sleeps at once for a number of pauses, which grows if it happens again.

use std::cell::Cell;
use std::time::Duration;

use crate::clock::nanos;

/// How long a shard watches for its peers: about what a sleep and a wake-up cost both sides together. So the watching
/// never burns more than twice what the best choice would have cost.
const PEERS_NS: u64 = 50_000;
/// What a wake-up adds to a pause, as far as the sleeper can tell.
const WAKE_NS: u64 = 50_000;
/// The longest time between two looks of a spin that nobody has interrupted.
const LOOK_NS_MAX: u64 = 100_000;
/// Pauses without a spin after an interruption: after the first, and at most.
const REST_MIN: u32 = 4;
const REST_MAX: u32 = 256;
/// What a pause changes of the mean: one part in so many.
const PARTS: u64 = 8;

/// What a shard watches for when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// It sleeps at once.
    Nothing,
    /// For what a peer may send that is at work.
    Peers,
    /// For whatever may come, for so long.
    Everything(Duration),
}

/// The mean of the pauses, and what was learned of the machine.
#[derive(Debug)]
pub(super) struct Spin {
    watch: Watch,
    /// The longest spin; zero if none is wanted.
    limit_ns: u64,
    /// Mean pause, of pauses that count as no longer than four limits.
    pause_ns: Cell<u64>,
    /// Pauses to come that are slept through.
    rest_left: Cell<u32>,
    /// How many there will be after the next interruption.
    rest: Cell<u32>,
}

impl Spin {
    pub(super) fn new(watch: Watch) -> Self {
        Self {
            watch,
            limit_ns: match watch {
                Watch::Nothing => 0,
                Watch::Peers => PEERS_NS,
                Watch::Everything(limit) => nanos(limit),
            },
            // As if news came as fast as it may.
            pause_ns: Cell::new(0),
            rest_left: Cell::new(0),
            rest: Cell::new(REST_MIN),
        }
    }

    /// Whether the shard watches for its peers only.
    pub(super) fn is_for_peers(&self) -> bool {
        self.watch == Watch::Peers
    }

    /// How long to spin in this pause; `None` if not at all.
    pub(super) fn begin(&self) -> Option<u64> {
        if self.limit_ns == 0 {
            return None;
        }
        let left = self.rest_left.get();
        if left > 0 {
            self.rest_left.set(left - 1);
            return None;
        }
        (self.pause_ns.get() <= self.limit_ns).then_some(self.limit_ns)
    }

    /// News ended a spin.
    pub(super) fn caught(&self, after_ns: u64) {
        self.rest.set((self.rest.get() - 1).max(REST_MIN));
        self.learn(after_ns);
    }

    /// Something else ended a spin that was to wait for peers.
    pub(super) fn disturbed(&self) {
        self.learn(self.limit_ns * 2);
    }

    /// A pause ended that was slept through, without a spin or after one of this length.
    pub(super) fn slept(&self, spun_ns: u64, slept_ns: u64) {
        // What was spun in vain is known to be a lower bound.
        self.learn(
            spun_ns
                .saturating_add(slept_ns.saturating_sub(WAKE_NS))
                .max(spun_ns * 2),
        );
    }

    /// Whether somebody else had the CPU between two looks of a spin; it is left to them then.
    pub(super) fn is_interrupted(&self, since_last_look_ns: u64) -> bool {
        let interrupted = since_last_look_ns > LOOK_NS_MAX;
        if interrupted {
            let rest = self.rest.get();
            self.rest_left.set(rest);
            self.rest.set((rest * 2).min(REST_MAX));
        }
        interrupted
    }

    fn learn(&self, pause_ns: u64) {
        let pause_ns = pause_ns.min(self.limit_ns.saturating_mul(4));
        let mean = self.pause_ns.get();
        self.pause_ns.set(mean - mean / PARTS + pause_ns / PARTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Watch = Watch::Everything(Duration::from_micros(40));

    /// Pauses of one length; returns how many of them were spun.
    fn pauses(spin: &Spin, count: usize, pause_ns: u64) -> usize {
        let mut spun = 0;
        for _ in 0..count {
            match spin.begin() {
                Some(limit_ns) if pause_ns <= limit_ns => spin.caught(pause_ns),
                Some(limit_ns) => spin.slept(limit_ns, pause_ns - limit_ns + WAKE_NS),
                None => {
                    spin.slept(0, pause_ns + WAKE_NS);
                    continue;
                }
            }
            spun += 1;
        }
        spun
    }

    #[test]
    fn short_pauses_are_spun_and_long_ones_slept_through() {
        let spin = Spin::new(LIMIT);
        assert_eq!(pauses(&spin, 100, 20_000), 100);
        assert!(pauses(&spin, 100, 10_000_000) < 10);
        assert_eq!(pauses(&spin, 100, 10_000_000), 0);
        pauses(&spin, 20, 10_000);
        assert_eq!(pauses(&spin, 100, 10_000), 100, "it found out");
    }

    #[test]
    fn pauses_a_little_over_the_limit_are_spun_now_and_then_only() {
        let spin = Spin::new(LIMIT);
        pauses(&spin, 100, 45_000);
        assert!(pauses(&spin, 1000, 45_000) < 200);
    }

    #[test]
    fn a_shard_whose_cpu_others_want_stops_for_a_while_and_for_longer_if_they_go_on() {
        let spin = Spin::new(LIMIT);
        assert!(!spin.is_interrupted(2000));
        assert!(spin.begin().is_some());
        for rest in [4, 8, 16, 32, 64, 128, 256, 256] {
            assert!(spin.is_interrupted(3_000_000));
            let spun = (0..300).filter(|_| spin.begin().is_some()).count();
            assert_eq!(spun, 300 - rest);
        }
        pauses(&spin, 1000, 10_000);
        assert!(spin.is_interrupted(3_000_000));
        let spun = (0..300).filter(|_| spin.begin().is_some()).count();
        assert_eq!(spun, 300 - 4, "they had gone");
    }

    #[test]
    fn a_shard_that_others_than_its_peers_wake_does_not_watch_for_them() {
        let spin = Spin::new(Watch::Peers);
        let spun = (0..100).filter(|_| {
            let spins = spin.begin().is_some();
            if spins {
                spin.disturbed();
            }
            spins
        });
        assert!(spun.count() < 10);
    }

    #[test]
    fn who_watches_for_nothing_or_for_no_time_never_spins() {
        assert_eq!(Spin::new(Watch::Nothing).begin(), None);
        assert_eq!(Spin::new(Watch::Everything(Duration::ZERO)).begin(), None);
    }
}
