//! Calls of the loop at a time that was set.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::task::{Wake, Waker};

use super::Instant;
use super::wheel::TimerKey;
use crate::shard::{Shard, ShardNumber, context};

/// A function that a shard's loop calls at a given time, for layers that look after something now and then.
///
/// It is no task and no timer that anybody waits for: neither counts it, and it keeps no shard from its end. It rings
/// once for each time it is set, and has one setting at a time.
///
/// # Shard affinity
/// It belongs to the shard that first set it, and rings there.
///
/// # Examples
/// ```
/// use greenroom_runtime::time::{Alarm, Instant, sleep};
/// use std::cell::Cell;
/// use std::time::Duration;
///
/// thread_local! { static RUNG: Cell<u32> = const { Cell::new(0) }; }
///
/// let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let alarm = Alarm::new();
///     alarm.set_by(Instant::now() + Duration::from_millis(2), || RUNG.set(RUNG.get() + 1));
///     sleep(Duration::from_millis(5)).await;
///     assert_eq!(RUNG.get(), 1);
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Default)]
pub struct Alarm {
    set: Cell<Option<Setting>>,
}

#[derive(Clone, Copy)]
struct Setting {
    at_ns: u64,
    shard: ShardNumber,
    key: TimerKey,
}

impl Alarm {
    /// An alarm that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            set: Cell::new(None),
        }
    }

    /// Sees to it that the function is called at this moment, or at an earlier one that was set before.
    ///
    /// # Panics
    /// If the calling thread is no shard.
    #[track_caller]
    pub fn set_by(&self, at: Instant, ring: fn()) {
        let set = context::with(|shard| {
            let is_earlier = |set: Setting| {
                let known = shard.timers().borrow_mut().has_alarm(set.key);
                known && set.shard == shard.number() && set.at_ns <= at.ns
            };
            if !self.set.get().is_some_and(is_earlier) {
                self.set(shard, at.ns, ring);
            }
        });
        set.unwrap_or_else(|| panic!("an alarm was set on a thread that is no shard"));
    }

    /// Sets it for this moment instead of any other.
    pub(crate) fn set(&self, shard: &Shard, at_ns: u64, ring: fn()) {
        let waker = Waker::from(Arc::new(Bell { ring }));
        let mut timers = shard.timers().borrow_mut();
        let outdated = self
            .set
            .get()
            .filter(|set| set.shard == shard.number())
            .and_then(|set| timers.cancel_alarm(set.key));
        let setting = Setting {
            at_ns,
            shard: shard.number(),
            key: timers.insert_alarm(at_ns, waker),
        };
        drop(timers);
        drop(outdated);
        self.set.set(Some(setting));
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").finish_non_exhaustive()
    }
}

/// What the wheel wakes.
struct Bell {
    ring: fn(),
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        context::with(|shard| shard.timers().borrow_mut().alarm_rang());
        (self.ring)();
    }
}
