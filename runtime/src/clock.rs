//! The clock seam: the only place that asks the kernel for the time.

use std::time::Duration;

use crate::shard::{Shard, context};
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

/// Nanoseconds on the clock of the current shard; on a thread that is no shard, of the machine, which is the clock of every
/// shard that is not simulated.
pub(crate) fn now_ns_anywhere() -> u64 {
    context::with(Shard::now_ns).unwrap_or_else(|| Clock::Monotonic.now_ns())
}

/// The moment that another clock of the machine shows, on the clock of the shards.
pub(crate) fn ns_of(instant: std::time::Instant) -> u64 {
    let now_ns = now_ns_anywhere();
    let now = std::time::Instant::now();
    match instant.checked_duration_since(now) {
        Some(ahead) => now_ns.saturating_add(nanos(ahead)),
        None => now_ns.saturating_sub(nanos(now - instant)),
    }
}
