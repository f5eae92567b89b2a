//! How much an actor may do before other tasks of its shard have their turn.
//!
//! So many messages, and about so much time. Who looks at the clock with each message would pay as much for the look as for
//! the message, so the share keeps a *pace*: how many messages there are between two looks. It follows what the handlers
//! take: a share that ran out of time sets the pace to a quarter of what fitted into it, one that did not doubles it. At
//! the slowest pace of looking, that of an actor whose handlers are short, nobody looks at the clock before the pace is
//! reached, so a share of few messages costs no look at all.

use std::time::Duration;

use greenroom_runtime::time::Instant;

/// Messages handled in one activation.
const MESSAGES: u32 = 64;
/// Time for them. One handler may take any time: it is not cut off.
const TIME: Duration = Duration::from_micros(200);
/// The most messages between two looks at the clock.
const PACE_MAX: u32 = 16;

/// What is left of an activation.
#[derive(Debug)]
pub struct Share {
    /// Messages before the next look.
    ahead: u32,
    /// Messages after that.
    later: u32,
    pace: u32,
    /// When the time began that is measured, if it has.
    since: Option<Instant>,
    /// The time was up before the messages.
    was_late: bool,
}

impl Share {
    /// The first share of an actor, of whose handlers nothing is known. Most actors begin with no message, so there is no
    /// look at the clock before the second one.
    pub(super) fn new() -> Self {
        Self {
            ahead: 1,
            later: MESSAGES - 1,
            pace: 1,
            since: None,
            was_late: false,
        }
    }

    /// An activation begins.
    pub(super) fn renew(&mut self) {
        if !std::mem::take(&mut self.was_late) {
            self.pace = (self.pace * 2).min(PACE_MAX);
        }
        self.since = (self.pace < PACE_MAX).then(Instant::now);
        self.later = MESSAGES;
        self.plan();
    }

    /// Takes the share of one message; false if nothing is left.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        if self.ahead == 0 && !self.look(Instant::now) {
            return false;
        }
        self.ahead -= 1;
        true
    }

    /// Takes the shares of messages that were handled together with another one.
    #[inline]
    pub(super) fn charge(&mut self, messages: u32) {
        let ahead = self.ahead.min(messages);
        self.ahead -= ahead;
        self.later = self.later.saturating_sub(messages - ahead);
    }

    /// Plans the messages up to the next look.
    fn plan(&mut self) {
        self.ahead = self.pace.min(self.later);
        self.later -= self.ahead;
    }

    /// Whether there is time for more messages.
    #[cold]
    fn look(&mut self, now: impl FnOnce() -> Instant) -> bool {
        if self.later == 0 {
            return false;
        }
        let now = now();
        if now - *self.since.get_or_insert(now) >= TIME {
            let fitted = MESSAGES - self.later;
            self.pace = (fitted / 4).clamp(1, PACE_MAX);
            self.was_late = true;
            return false;
        }
        self.plan();
        true
    }
}

#[cfg(test)]
mod tests {
    use greenroom_runtime::Builder;

    use super::*;

    /// Runs activations of handlers of one length; returns the messages and the looks of each.
    fn activations(share: &mut Share, each: Duration) -> Vec<(u32, u32)> {
        let mut now = Instant::now();
        let mut activations = Vec::new();
        for _ in 0..6 {
            share.renew();
            // What `renew` reads is this test's clock.
            share.since = share.since.map(|_| now);
            let (mut messages, mut looks) = (0, 0);
            loop {
                if share.ahead == 0 {
                    looks += 1;
                    if !share.look(|| now) {
                        break;
                    }
                }
                share.ahead -= 1;
                messages += 1;
                now = now + each;
            }
            activations.push((messages, looks));
        }
        activations
    }

    fn on_a_shard(body: impl FnOnce() + Send + 'static) {
        let runtime = Builder::new().shards(1).start().expect("a shard");
        runtime.run_on(0, move || async move { body() });
    }

    #[test]
    fn short_handlers_are_bounded_by_number_and_timed_rarely() {
        on_a_shard(|| {
            let share = &mut Share::new();
            let last = activations(share, Duration::from_nanos(20)).pop();
            assert_eq!(last, Some((64, 4)), "the last look is none at the clock");
        });
    }

    #[test]
    fn long_handlers_are_bounded_by_time() {
        on_a_shard(|| {
            let share = &mut Share::new();
            let micros = |micros| Duration::from_micros(micros);
            let slow = activations(share, micros(300));
            assert_eq!((slow[0].0, slow[1], slow[5]), (2, (1, 1), (1, 1)));
            let last = activations(share, micros(50)).pop();
            assert!(last.is_some_and(|(messages, _)| (4..=6).contains(&messages)));
            activations(share, micros(0));
            let slow = activations(share, micros(300));
            assert_eq!(slow[0].0, 32, "nobody looks before");
            assert!(slow[1].0 <= 16 && slow[5].0 <= 2, "{slow:?}");
        });
    }

    #[test]
    fn messages_that_are_handled_together_use_up_the_share_of_each() {
        on_a_shard(|| {
            let mut share = Share::new();
            for (beside, alone) in [(0, 63), (1, 62), (62, 1), (63, 0), (64, 0), (u32::MAX, 0)] {
                for pace in [1, PACE_MAX] {
                    share.pace = pace;
                    share.renew();
                    assert!(share.take());
                    share.charge(beside);
                    let rest = (0..100).take_while(|_| {
                        share.since = None; // No time passes.
                        share.take()
                    });
                    assert_eq!(rest.count(), alone, "{beside} besides at pace {pace}");
                }
            }
        });
    }

    #[test]
    fn few_short_messages_cost_no_look_at_the_clock() {
        on_a_shard(|| {
            let mut share = Share::new();
            for _ in 0..5 {
                assert!(share.take());
                share.renew();
            }
            assert!(share.since.is_none());
        });
    }
}
