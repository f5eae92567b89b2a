//! How many tasks run between two looks at the clock.
//!
//! A turn ends when its time is over, and who would know that has to look at the clock, which costs as much as a short
//! poll. So the shard keeps a mean of how long polls take, and looks after as many as fill a turn: rarely while polls
//! are short, after each one when they are long. The mean is of what was measured between two looks, so that nothing
//! is measured for its own sake.
//!
//! The mean is of the past, and after a sleep there may be other work than before it. The first looks of a shard that
//! slept therefore come early, each after twice as many polls as the one before.

use std::cell::Cell;

use super::turn::TURN_NS;

/// The most polls between two looks.
pub(super) const POLLS_MAX: u32 = 127;
/// Polls before the first look after a sleep.
const POLLS_AFTER_SLEEP: u32 = 2;
/// What the mean keeps of itself with each poll that is measured.
const KEPT: f64 = 0.9;

/// The mean, and what follows from it.
#[derive(Debug)]
pub(super) struct Pace {
    /// Mean length of a poll; zero before the first look.
    poll_ns: Cell<f64>,
    /// As many polls fill a turn.
    fitting: Cell<u32>,
    /// Polls before the next look, at most `fitting`.
    ahead: Cell<u32>,
    /// When the polls began that are not measured yet.
    since_ns: Cell<u64>,
    /// Polls of the turn that no look has measured.
    unmeasured: Cell<u32>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            poll_ns: Cell::new(0.0),
            fitting: Cell::new(POLLS_MAX),
            ahead: Cell::new(POLLS_AFTER_SLEEP),
            since_ns: Cell::new(0),
            unmeasured: Cell::new(0),
        }
    }

    /// Polls to run before the next look.
    #[inline]
    pub(super) fn polls_ahead(&self) -> u32 {
        self.ahead.get()
    }

    /// Mean length of a poll.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a mean of lengths of time in nanoseconds, and a cast that saturates"
    )]
    pub(super) fn poll_ns(&self) -> u64 {
        self.poll_ns.get() as u64
    }

    /// The tasks of a turn are about to run. What the last turn left unmeasured was too little to matter.
    pub(super) fn begin(&self, now_ns: u64) {
        self.since_ns.set(now_ns);
        self.unmeasured.set(0);
    }

    /// The clock was looked at after so many polls: the next look may wait for longer.
    pub(super) fn look(&self, polls: u32, now_ns: u64) {
        self.measure(polls, now_ns.saturating_sub(self.since_ns.get()));
        self.since_ns.set(now_ns);
        let doubled = self.ahead.get() * 2;
        self.ahead.set(doubled.min(self.fitting.get()));
    }

    /// The turn is over, so many polls after the last look.
    pub(super) fn leave(&self, polls: u32) {
        self.unmeasured.set(polls);
    }

    /// The shard has nothing ready and reads the clock anyway.
    pub(super) fn close(&self, now_ns: u64) {
        let polls = self.unmeasured.replace(0);
        self.measure(polls, now_ns.saturating_sub(self.since_ns.get()));
    }

    /// The shard slept: what comes may be different.
    pub(super) fn unsettle(&self) {
        self.ahead.set(POLLS_AFTER_SLEEP);
    }

    /// Takes note of what polls took together.
    fn measure(&self, polls: u32, elapsed_ns: u64) {
        if polls == 0 {
            return;
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "2^53 nanoseconds are a hundred days"
        )]
        let mean_ns = elapsed_ns as f64 / f64::from(polls);
        let poll_ns = match self.poll_ns.get() {
            0.0 => mean_ns,
            // As if each of them had been measured, and had taken the mean of all.
            known => mean_ns + (known - mean_ns) * KEPT.powi(polls.cast_signed()),
        };
        self.poll_ns.set(poll_ns);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and clamped after a cast that saturates"
        )]
        let fitting = (TURN_NS as f64 / poll_ns.max(1.0)) as u32;
        self.fitting.set(fitting.clamp(1, POLLS_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls of one length, looked at as the pace says; returns how many looks it took.
    fn run(pace: &Pace, polls: u32, each_ns: u64) -> u32 {
        let (mut done, mut looks, mut now_ns) = (0, 0, 0);
        pace.begin(now_ns);
        while done < polls {
            let batch = pace.polls_ahead();
            now_ns += u64::from(batch) * each_ns;
            pace.look(batch, now_ns);
            done += batch;
            looks += 1;
        }
        looks
    }

    #[test]
    fn short_polls_are_looked_at_rarely_and_long_ones_each() {
        let pace = Pace::new();
        run(&pace, 1000, 100);
        assert_eq!((pace.poll_ns(), pace.polls_ahead()), (100, POLLS_MAX));
        run(&pace, 1000, 10_000);
        assert_eq!(pace.polls_ahead(), 20);
        run(&pace, 1000, 5_000_000);
        assert_eq!(pace.polls_ahead(), 1);
        run(&pace, 1000, 100);
        assert_eq!(pace.polls_ahead(), POLLS_MAX);
    }

    #[test]
    fn one_long_poll_does_not_change_the_pace_for_ever() {
        let pace = Pace::new();
        run(&pace, 1000, 1000);
        pace.begin(0);
        pace.look(1, 1_000_000);
        assert_eq!(pace.polls_ahead(), 1);
        run(&pace, 100, 1000);
        assert!(pace.polls_ahead() > 64);
    }

    #[test]
    fn after_a_sleep_the_first_looks_come_early() {
        let pace = Pace::new();
        run(&pace, 1000, 100);
        pace.unsettle();
        assert_eq!(pace.polls_ahead(), 2);
        assert_eq!(run(&pace, 126, 100), 6);
        assert_eq!(pace.polls_ahead(), POLLS_MAX);
    }

    #[test]
    fn polls_that_take_no_time_are_no_division_by_zero() {
        let pace = Pace::new();
        run(&pace, 1000, 0);
        pace.close(1000);
        assert_eq!((pace.poll_ns(), pace.polls_ahead()), (0, POLLS_MAX));
    }
}
