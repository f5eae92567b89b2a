//! Waiting for a moment.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::wheel::TimerKey;
use super::{Instant, no_timers};
use crate::shard::{Shard, ShardNumber, context};

/// Waits for a time, counted from this call.
///
/// # Panics
/// If the calling thread is no shard.
///
/// # Cancel safety
/// Dropping the future cancels the timer.
///
/// # Examples
/// ```
/// use greenroom_runtime::time::{Instant, sleep};
/// use std::time::Duration;
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let start = Instant::now();
///     sleep(Duration::from_millis(5)).await;
///     assert!(start.elapsed() >= Duration::from_millis(5));
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant::now_of_timers("sleep") + duration)
}

/// Waits until a moment.
///
/// # Cancel safety
/// Dropping the future cancels the timer.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep {
        deadline,
        timer: None,
        yielded: false,
    }
}

/// The future of [`sleep`] and [`sleep_until`].
///
/// # Panics
/// When polled on a thread that is no shard.
#[must_use = "a sleep does nothing until it is awaited"]
pub struct Sleep {
    deadline: Instant,
    /// The shard and the timer there. A sleep that moved to another shard starts a new timer; the old one, if its shard
    /// still runs, costs one needless wake.
    timer: Option<(ShardNumber, TimerKey)>,
    /// Polled after its deadline, without having waited, and told to come again in the next turn.
    yielded: bool,
}

impl Sleep {
    /// The moment it waits for.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        let known = self.timer;
        let yielded = self.yielded;
        let polled = context::with(|shard| {
            if let Some((number, key)) = known
                && number == shard.number()
                && keeps_waiting(shard, key, cx.waker())
            {
                return Polled::Waits(number, key);
            }
            if shard.now_ns() >= deadline.ns {
                if known.is_none() && !yielded {
                    // Nothing to wait for, but a loop of such sleeps must not keep the shard to itself.
                    shard.wake_later(cx.waker());
                    return Polled::Yielded;
                }
                return Polled::Passed;
            }
            // Before the borrow: it may be anyone's code.
            let waker = cx.waker().clone();
            let key = shard.timers().borrow_mut().insert(deadline.ns, waker);
            Polled::Waits(shard.number(), key)
        });
        match polled.unwrap_or_else(|| no_timers("a sleep was polled")) {
            Polled::Waits(number, key) => self.timer = Some((number, key)),
            Polled::Yielded => self.yielded = true,
            Polled::Passed => {
                self.timer = None;
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

/// Sees to it that the timer, if it has not fired yet, wakes this waker. False if it has.
fn keeps_waiting(shard: &Shard, key: TimerKey, waker: &Waker) -> bool {
    let will_wake = {
        let mut timers = shard.timers().borrow_mut();
        timers
            .wheel
            .get_mut(key)
            .map(|known| known.will_wake(waker))
    };
    match will_wake {
        None => false,
        Some(true) => true,
        Some(false) => {
            // Cloned and dropped out of the borrow: both may be anyone's code.
            let mut waker = waker.clone();
            let mut timers = shard.timers().borrow_mut();
            let known = timers.wheel.get_mut(key);
            let waits = known.is_some();
            if let Some(known) = known {
                std::mem::swap(known, &mut waker);
            }
            drop(timers);
            drop(waker);
            waits
        }
    }
}

/// What a poll found.
enum Polled {
    Waits(ShardNumber, TimerKey),
    Yielded,
    Passed,
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some((number, key)) = self.timer else {
            return;
        };
        context::with(|shard| {
            if shard.number() == number {
                let waker = shard.timers().borrow_mut().wheel.cancel(key);
                drop(waker);
            }
        });
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
