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

impl MissedTicks {
    /// When the tick after one that was due at `due` and used at `now` is due.
    ///
    /// # Panics
    /// If the period is zero.
    ///
    /// # Examples
    /// ```
    /// use greenroom_runtime::time::{Instant, MissedTicks};
    /// use std::time::Duration;
    /// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
    /// runtime.run_on(0, || async {
    ///     let ms = Duration::from_millis;
    ///     let due = Instant::now();
    ///     let next = |missed: MissedTicks| missed.next(due, due + ms(25), ms(10)) - due;
    ///     assert_eq!(next(MissedTicks::Skip), ms(30));
    ///     assert_eq!(next(MissedTicks::Burst), ms(10));
    ///     assert_eq!(next(MissedTicks::Delay), ms(35));
    /// });
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[must_use]
    pub fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        match self {
            Self::Burst => due + period,
            Self::Delay => now + period,
            Self::Skip => {
                let period_ns = period.as_nanos();
                let missed = (now - due).as_nanos() / period_ns;
                let step_ns = period_ns.saturating_mul(missed + 1);
                due + Duration::from_nanos(u64::try_from(step_ns).unwrap_or(u64::MAX))
            }
        }
    }
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
        next: Instant::now_of_timers("interval") + period,
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
        self.next = self.missed.next(due, Instant::now(), self.period);
        due
    }
}
