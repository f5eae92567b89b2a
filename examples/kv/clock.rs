//! The time of day, read from the one clock of the process.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 that never run backwards, whatever happens to the time of day after the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    started_after_epoch: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock {
            started: Instant::now(),
            // A time of day before 1970 is no time of day; the end of a key is told by differences only.
            started_after_epoch: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let after_epoch = self.started_after_epoch + self.started.elapsed();
        u64::try_from(after_epoch.as_millis()).unwrap_or(u64::MAX)
    }
}
