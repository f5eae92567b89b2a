//! The clock seam: the only place that asks the kernel for the time.

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
