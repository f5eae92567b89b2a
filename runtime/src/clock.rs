//! The clock seam: the only place that asks the kernel for the time.

use std::time::Duration;

use crate::sys;

/// Where a shard's time comes from.
#[derive(Debug)]
pub(crate) enum Clock {
    /// The machine's monotonic clock.
    Monotonic,
}

impl Clock {
    /// Nanoseconds since an arbitrary, fixed moment.
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Self::Monotonic => sys::monotonic_ns(),
        }
    }
}

/// A duration in nanoseconds, as deadlines are counted. One that does not fit, of more than 584 years, is the longest.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
