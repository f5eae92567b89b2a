//! Seeing inside: what a running system tells about its actors.
//!
//! * [`Snapshot`]: all actors, what each is doing and what waits for it, on request. Shards answer between two tasks; one that
//!   does not answer in time is named, and left out.
//! * [`Metrics`]: how many actors there are of each type, and how much they do.
//! * [`DeadLetter`]: what the hook of a system hears of each message that reached nobody.
//!
//! * With the feature `tracing`, a span for each message that is handled.
//!
//! What shards and tasks do is seen with [`greenroom_runtime::observe`]. Nothing costs more than a branch while it is not used.

mod dead_letter;
mod metrics;
mod snapshot;
mod tally;
mod trace;

pub use self::dead_letter::{DeadLetter, DeadLetterReason};
pub(crate) use self::dead_letter::{DeadLetterHook, dispose, report, report_call};
pub use self::metrics::{Metrics, ShardMetrics, TypeMetrics};
pub use self::snapshot::{
    ActorActivity, ActorSnapshot, HandlerSnapshot, LaneSnapshot, ShardActors, ShardSnapshot,
    Snapshot, WaitReason, WaitSnapshot,
};
pub(crate) use self::tally::{Tally, Timed};
pub(crate) use self::trace::Trail;
pub(crate) use self::trace::{Handling, is_on};
