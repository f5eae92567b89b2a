//! Repeating at a fixed distance.

use std::time::Duration;

use super::{Instant, sleep_until};

/// What an [`Interval`] does about ticks whose time has passed unused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTicks {
    /// Leaves them out; later ticks keep to the original grid.
    #[default]
    Skip,
    /// Gives them all at once, then goes on along the original grid.
    Burst,
    /// Leaves them out and starts a new grid at the late tick.
    Delay,
}

/// Ticks at a fixed distance, the first one after one period.
///
/// # Panics
/// If the period is shorter than a millisecond, the resolution of timers, or the calling thread is no shard.
///
/// # Examples
/// ```
/// use greenroom_runtime::time::interval;
/// use std::time::Duration;
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let mut ticks = interval(Duration::from_millis(2));
///     let first = ticks.tick().await;
///     let second = ticks.tick().await;
///     assert!(second - first >= Duration::from_millis(2));
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
#[must_use]
pub fn interval(period: Duration) -> Interval {
    assert!(
        period >= Duration::from_millis(1),
        "the period of an interval is at least 1 ms, not {period:?}"
    );
    Interval {
        next: Instant::now() + period,
        period,
        missed: MissedTicks::default(),
    }
}

/// Made by [`interval`].
#[derive(Debug)]
pub struct Interval {
    next: Instant,
    period: Duration,
    missed: MissedTicks,
}

impl Interval {
    /// Says what to do about ticks whose time has passed unused; [`MissedTicks::Skip`] if never called.
    #[must_use]
    pub fn on_missed(mut self, missed: MissedTicks) -> Self {
        self.missed = missed;
        self
    }

    /// Waits for the next tick and returns the moment it was due.
    ///
    /// # Cancel safety
    /// A tick whose future is dropped is not consumed.
    pub async fn tick(&mut self) -> Instant {
        sleep_until(self.next).await;
        let due = self.next;
        let now = Instant::now();
        self.next = match self.missed {
            MissedTicks::Burst => due + self.period,
            MissedTicks::Delay => now + self.period,
            MissedTicks::Skip => {
                let period_ns = self.period.as_nanos();
                let missed = (now - due).as_nanos() / period_ns;
                let step_ns = period_ns.saturating_mul(missed + 1);
                due + Duration::from_nanos(u64::try_from(step_ns).unwrap_or(u64::MAX))
            }
        };
        due
    }
}
