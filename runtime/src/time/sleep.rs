//! Waiting for a moment.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Instant;
use super::wheel::TimerKey;
use crate::shard::{ShardNumber, context};

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
    sleep_until(Instant::now() + duration)
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
            let mut timers = shard.timers().borrow_mut();
            if let Some((number, key)) = known
                && number == shard.number()
                && let Some(waker) = timers.wheel.get_mut(key)
            {
                if !waker.will_wake(cx.waker()) {
                    let old = std::mem::replace(waker, cx.waker().clone());
                    drop(timers);
                    drop(old);
                }
                return Polled::Waits(number, key);
            }
            if shard.now_ns() >= deadline.ns {
                if known.is_none() && !yielded {
                    // Nothing to wait for, but a loop of such sleeps must not keep the shard to itself.
                    drop(timers);
                    shard.wake_later(cx.waker());
                    return Polled::Yielded;
                }
                return Polled::Passed;
            }
            Polled::Waits(
                shard.number(),
                timers.insert(deadline.ns, cx.waker().clone()),
            )
        });
        match polled.unwrap_or_else(|| panic!("a sleep was polled on a thread that is no shard")) {
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
