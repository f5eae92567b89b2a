//! The end of a runtime.
//!
//! | phase | what happens | ends with |
//! |---|---|---|
//! | *running* | | [`Handle::begin_shutdown`], a shutdown, or the panic of a shard's loop |
//! | *draining* | tasks hear [`shutdown_signal`] and finish; they may spawn, nobody outside may | no task is left on any shard, or the grace is over |
//! | *cancelling* | each shard drops its tasks; new ones are dropped at once | the last destructor has run |
//! | *quiescing* | operations are cancelled and the kernel's answers awaited | none is left, or the limit; what is left is leaked |
//! | *waiting* | a shard that holds nothing any more serves its peers | all shards hold nothing |
//! | *closed* | its thread ends | |
//!
//! Draining is one phase of the whole runtime; from there each shard goes its own way, and its threads end whether anybody
//! waits for them or not. Whoever does ([`Runtime::shutdown_within`], or the drop of a [`Runtime`]) gives each phase of each
//! shard the time of [`Builder::shutdown_limit`]. A shard that needs longer is given up: its peers no longer wait for it,
//! its thread is left behind, and the [`ShutdownReport`] names it. So a destructor that never returns hides neither the
//! panic of another shard nor what else there is to report.
//!
//! [`Builder::shutdown_limit`]: crate::Builder::shutdown_limit
//! [`Handle::begin_shutdown`]: crate::Handle::begin_shutdown
//! [`Runtime`]: crate::Runtime
//! [`Runtime::shutdown_within`]: crate::Runtime::shutdown_within

mod report;
mod signal;
pub(crate) mod stop;

pub use report::{ShardReport, ShutdownReport, Stuck};
pub use signal::{ShutdownSignal, is_shutting_down, shutdown_signal, until_shutdown};

/// How far the end of a shard has come. Later phases are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Phase {
    /// It works.
    Running,
    /// Its tasks have heard of the shutdown, and go on until they are done or the grace is over.
    Draining,
    /// It drops its tasks, and what the layers above keep on it.
    Cancelling,
    /// It waits for the kernel to give back what operations hold.
    Quiescing,
    /// It holds nothing any more, and waits for the other shards.
    Waiting,
    /// Its thread has ended.
    Closed,
}
