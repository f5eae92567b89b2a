//! Time: sleeping, limiting, repeating.
//!
//! Timers live in user space, in one hierarchical [`wheel`] per shard; the kernel only learns how long the shard may
//! sleep. Resolution is one millisecond: a timer never fires early, and fires in the first turn after its millisecond
//! has passed.

mod alarm;
mod interval;
mod sleep;
mod timeout;
pub(crate) mod wheel;

pub use alarm::Alarm;
pub use interval::{Interval, MissedTicks, interval};
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Elapsed, Timeout, timeout};

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::task::Waker;
use std::time::Duration;

use self::wheel::{TimerKey, Wheel};
use crate::clock::nanos;
use crate::shard::{Shard, context};
use crate::task::{TaskId, woken_task};

/// Nanoseconds in one tick of the wheel.
const TICK_NS: NonZeroU64 = NonZeroU64::new(1_000_000).expect("not zero");

/// Ends what needs the timers of a shard and has none.
#[cold]
#[track_caller]
fn no_timers(what: &str) -> ! {
    panic!(
        "{what} on a thread that is no shard, and has no timers: run it on a shard, with `run_on` or `spawn_on`"
    )
}

/// A moment on the clock of the runtime.
///
/// It is the monotonic clock of the machine, so moments of different shards can be compared.
///
/// # Examples
/// ```
/// use greenroom_runtime::time::Instant;
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let start = Instant::now();
///     assert!(start.elapsed().as_secs() < 60);
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    ns: u64,
}

impl Instant {
    pub(crate) fn from_ns(ns: u64) -> Self {
        Self { ns }
    }

    pub(crate) fn ns(self) -> u64 {
        self.ns
    }

    /// The moment so long from now.
    ///
    /// # Shard affinity
    /// Any thread.
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        Self {
            ns: crate::clock::now_ns_anywhere(),
        } + duration
    }

    /// Time until this moment, zero if it has passed.
    ///
    /// # Shard affinity
    /// Any thread.
    #[must_use]
    pub fn remaining(self) -> Duration {
        Duration::from_nanos(self.ns.saturating_sub(crate::clock::now_ns_anywhere()))
    }

    /// The current moment.
    ///
    /// # Panics
    /// If the calling thread is no shard.
    #[must_use]
    #[track_caller]
    pub fn now() -> Self {
        Self::now_on_shard().unwrap_or_else(|| {
            panic!(
                "`Instant::now` was called on a thread that is no shard: take `std::time::Instant` there"
            )
        })
    }

    /// The current moment, for something that waits on this shard.
    #[track_caller]
    fn now_of_timers(what: &str) -> Self {
        Self::now_on_shard().unwrap_or_else(|| no_timers(&format!("`{what}` was called")))
    }

    fn now_on_shard() -> Option<Self> {
        context::with(Shard::now_ns).map(|ns| Self { ns })
    }

    /// Time since this moment, zero if it is yet to come.
    ///
    /// # Panics
    /// If the calling thread is no shard.
    #[must_use]
    #[track_caller]
    pub fn elapsed(self) -> Duration {
        Self::now() - self
    }
}

/// The same moment, as threads that are no shards have it.
impl From<std::time::Instant> for Instant {
    fn from(instant: std::time::Instant) -> Self {
        Self {
            ns: crate::clock::ns_of(instant),
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self {
            ns: self.ns.saturating_add(nanos(duration)),
        }
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.ns.saturating_sub(earlier.ns))
    }
}

/// The timers of one shard.
#[derive(Debug)]
pub(crate) struct Timers {
    wheel: Wheel<Waker>,
    /// Expired and not yet woken: the loop takes them one by one, so that no waker runs while this is borrowed.
    due: VecDeque<Waker>,
    /// Those that are alarms, for which nobody waits.
    alarms: usize,
}

impl Timers {
    pub(crate) fn new(now_ns: u64) -> Self {
        Self {
            wheel: Wheel::new(now_ns, TICK_NS),
            due: VecDeque::new(),
            alarms: 0,
        }
    }

    pub(crate) fn insert(&mut self, deadline_ns: u64, waker: Waker) -> TimerKey {
        self.wheel.insert(deadline_ns, waker)
    }

    /// Takes the waker of one timer that is due.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<Waker> {
        let Self { wheel, due, .. } = self;
        if due.is_empty() {
            wheel.advance(now_ns, |_, waker| due.push_back(waker));
        }
        due.pop_front()
    }

    /// Timers that have not fired, and for which somebody waits.
    pub(crate) fn len(&self) -> usize {
        // One that rings has left the wheel and is counted out when its function is called.
        self.wheel.len().saturating_sub(self.alarms)
    }

    pub(crate) fn insert_alarm(&mut self, deadline_ns: u64, waker: Waker) -> TimerKey {
        self.alarms += 1;
        self.wheel.insert(deadline_ns, waker)
    }

    pub(crate) fn has_alarm(&mut self, key: TimerKey) -> bool {
        self.wheel.get_mut(key).is_some()
    }

    pub(crate) fn cancel_alarm(&mut self, key: TimerKey) -> Option<Waker> {
        let cancelled = self.wheel.cancel(key);
        self.alarms -= usize::from(cancelled.is_some());
        cancelled
    }

    pub(crate) fn alarm_rang(&mut self) {
        self.alarms -= 1;
    }

    /// Tells of the task that each timer will wake, if it is one of ours.
    pub(crate) fn each(&self, mut tell: impl FnMut(Option<TaskId>)) {
        let waiting = self.wheel.each().map(|(_, waker)| waker);
        for waker in waiting.chain(&self.due) {
            tell(woken_task(waker));
        }
    }

    /// The first deadline, rounded up to a tick. Looks at every timer.
    pub(crate) fn first_deadline_ns(&self) -> Option<u64> {
        self.wheel.each().map(|(deadline_ns, _)| deadline_ns).min()
    }

    /// When the shard must look again at the latest.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.wheel.next_deadline()
    }
}
