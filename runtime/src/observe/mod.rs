//! Seeing inside: what a running system tells about itself, and to whom.
//!
//! * [`Metrics`] and [`Dump`]: what all shards count, and what they are at, on request. Shards answer between two tasks;
//!   one that does not answer in time is left out, and named.
//! * [`Found`]: the same for a question of the user's own.
//! * [`Stall`]: what the watchdog reports of a shard that does not come round its loop.
//! * With the feature `tracing`, spans and events.
//! * Hooks, see the methods of [`Builder`](crate::Builder): functions of the user's, called at certain moments.
//!
//! Nothing of it costs more than a branch while it is not used.

pub(crate) mod hooks;

mod dump;
mod gather;
mod metrics;
pub(crate) mod pulse;
mod survey;
pub(crate) mod trace;
pub(crate) mod watchdog;

pub use dump::{Dump, ShardDump, ShardState, TaskDump, TaskState};
pub use metrics::{LinkSample, Metrics, ShardNumbers, ShardSample};
pub use pulse::RunningTask;
pub use survey::{Found, write_answer};
pub use watchdog::Stall;
