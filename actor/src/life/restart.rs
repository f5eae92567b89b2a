//! Whether and when a failed actor is started again.

use std::collections::VecDeque;
use std::time::Duration;

use greenroom_runtime::time::Instant;

/// When a child is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// Never: its end is its end.
    #[default]
    Never,
    /// When it has failed: by a panic, a fatal error, an actor it was linked with, or a child.
    OnFailure,
    /// Also when it has stopped itself. Whoever stops or kills it from outside ends it for good.
    Always,
}

/// How a child is restarted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) restart: Restart,
    pub(crate) restarts_max: u32,
    pub(crate) within: Duration,
    pub(crate) backoff: Duration,
    pub(crate) backoff_max: Duration,
    pub(crate) healthy_after: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            restart: Restart::Never,
            restarts_max: 3,
            within: Duration::from_secs(5),
            backoff: Duration::from_millis(10),
            backoff_max: Duration::from_secs(1),
            healthy_after: Duration::from_secs(10),
        }
    }
}

impl Policy {
    /// How long to wait before the restart number `streak`, from 1, of those that followed each other without health between
    /// them. Up to 10 % more or less, so that actors which failed together do not come back together.
    fn delay(&self, streak: u32, random: u64) -> Duration {
        let doublings = streak.saturating_sub(1).min(31);
        let delay = self
            .backoff
            .saturating_mul(1 << doublings)
            .min(self.backoff_max);
        // From 900 to 1100 thousandths.
        let thousandths = 900 + u32::try_from(random % 201).expect("less than 201");
        delay.saturating_mul(thousandths) / 1000
    }
}

/// Makes one incarnation after the other.
pub(crate) type Factory<A> = Box<dyn FnMut() -> A>;

/// How a child came to be, and may come to be again.
pub(crate) struct Lineage<A> {
    pub(crate) policy: Policy,
    /// Makes the next incarnation; `None` if there is never one.
    pub(crate) factory: Option<Factory<A>>,
    story: Story,
}

/// The failures that still count.
#[derive(Debug)]
struct Story {
    failures: VecDeque<Instant>,
    streak: u32,
    born: Instant,
}

/// What a failure leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequel {
    RestartIn(Duration),
    GiveUp,
}

impl<A> Lineage<A> {
    pub(crate) fn new(policy: Policy, factory: Option<Factory<A>>) -> Self {
        Self {
            policy,
            factory,
            story: Story::new(Instant::now()),
        }
    }

    /// When it is started again: never without a factory.
    pub(crate) fn restart(&self) -> Restart {
        if self.factory.is_some() {
            self.policy.restart
        } else {
            Restart::Never
        }
    }

    /// Writes a failure down.
    pub(crate) fn failed(&mut self) -> Sequel {
        let random = greenroom_runtime::random();
        self.story.failed(&self.policy, Instant::now(), random)
    }

    /// How many failures count at the moment.
    pub(crate) fn restarts(&self) -> usize {
        self.story.failures.len()
    }

    /// The next incarnation begins.
    pub(crate) fn reborn(&mut self) {
        self.story.born = Instant::now();
    }
}

impl Story {
    fn new(born: Instant) -> Self {
        Self {
            failures: VecDeque::new(),
            streak: 0,
            born,
        }
    }

    fn failed(&mut self, policy: &Policy, now: Instant, random: u64) -> Sequel {
        if now - self.born >= policy.healthy_after {
            self.streak = 0;
        }
        self.streak += 1;
        self.failures.push_back(now);
        while self
            .failures
            .front()
            .is_some_and(|failure| now - *failure > policy.within)
        {
            self.failures.pop_front();
        }
        if self.failures.len() > policy.restarts_max as usize {
            Sequel::GiveUp
        } else {
            Sequel::RestartIn(policy.delay(self.streak, random))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_bound_and_vary_by_a_tenth() {
        let policy = Policy::default();
        let middle = |streak| policy.delay(streak, 100).as_millis();
        assert_eq!([1, 2, 3, 8, 40].map(middle), [10, 20, 40, 1000, 1000]);
        assert_eq!(policy.delay(1, 0), Duration::from_millis(9));
        assert_eq!(policy.delay(1, 200), Duration::from_millis(11));
        assert_eq!(policy.delay(u32::MAX, 200), Duration::from_millis(1100));
    }

    #[test]
    fn a_fourth_failure_within_the_time_is_one_too_many() {
        let runtime = greenroom_runtime::Builder::new().shards(1).start().unwrap();
        let start = runtime.run_on(0, || async { Instant::now() });
        let at = |ms| start + Duration::from_millis(ms);
        let policy = Policy::default();
        let mut story = Story::new(start);
        for failure in [0, 1_000, 2_000] {
            assert_ne!(story.failed(&policy, at(failure), 0), Sequel::GiveUp);
        }
        assert_eq!(story.failed(&policy, at(5_000), 0), Sequel::GiveUp);

        let mut story = Story::new(start);
        for failure in [0, 1_000, 2_000, 5_001, 6_001, 7_002] {
            assert_ne!(
                story.failed(&policy, at(failure), 0),
                Sequel::GiveUp,
                "{failure}"
            );
        }
    }

    #[test]
    fn delays_begin_anew_after_a_healthy_time() {
        let runtime = greenroom_runtime::Builder::new().shards(1).start().unwrap();
        let start = runtime.run_on(0, || async { Instant::now() });
        let policy = Policy::default();
        let mut story = Story::new(start);
        let mut delay = |at: Duration| story.failed(&policy, start + at, 100);
        let millis = |ms| Sequel::RestartIn(Duration::from_millis(ms));
        assert_eq!(delay(Duration::ZERO), millis(10));
        assert_eq!(delay(Duration::from_secs(9)), millis(20));
        assert_eq!(delay(Duration::from_secs(10)), millis(10));
    }
}
