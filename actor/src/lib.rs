//! Actors for servers that want one thread per core and no locks.
//!
//! `#[actor]` on an `impl` block turns its `pub` methods into typed messages. An actor is a plain value, `!Send` if you
//! like, born on one *shard* (a pinned thread with its own io_uring, run queue and timers) and never leaves it. It is
//! reached from anywhere through an [`Addr`], which is 16 bytes and `Copy`.
//!
//! ```
//! use greenroom::prelude::*;
//!
//! #[derive(Default)]
//! struct Counter { n: u64 }
//!
//! #[actor]
//! impl Counter {
//!     pub fn add(&mut self, by: u64) { self.n += by }        // a message
//!     pub fn get(&self) -> u64 { self.n }                    // a message with an answer
//! }
//!
//! fn main() -> Result<(), greenroom::Error> {
//!     let system = System::start(2)?;                        // two shards, all up or none
//!     system.block_on(async {
//!         let counter = system.spawn_on(1, Counter::default).await?;
//!         counter.add(5).tell().await?;                      // waits for room, not for the handler
//!         counter.add(5).try_tell()?;                        // never waits
//!         assert_eq!(counter.get().await?, 10);              // asks
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # The tour
//! * Define: [`macro@actor`], with [`macro@message`], [`macro@on`], [`macro@every`] and [`macro@skip`]; [`Ctx`], [`Reply`], [`Batch`].
//! * Begin: [`macro@main`], [`macro@test`], or [`System`] in a program of another kind.
//! * Start: [`spawn`], [`Handle::spawn_on`], [`Sharded`], [`Keyed`], [`Pool`].
//! * Find: [`Names`], [`ShardNames`].
//! * Many at once: [`Group`], [`Topic`].
//! * Send: [`Call`], on an [`Addr`] or a [`Local`]; in bulk with [`tell_many`] and [`Sharded::map`].
//! * Send without knowing the actor's type: [`Recipient`], [`Caller`].
//! * Stop: [`Addr::stop`], [`Addr::kill`], [`Owned`], [`System::shutdown`].
//! * Fail and be restarted: [`Ctx::spawn_child`], [`Addr::watch`], [`Down`].
//! * What can go wrong: [`CallError`], [`SendError`], [`SpawnError`], and [`Error`] for all of them.
//!
//! Tasks, timers, sockets and everything else that is no actor are in [`runtime`].

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings))))]
#![warn(clippy::unwrap_used)]

extern crate self as greenroom;

mod abort;
mod actor;
mod address;
mod answering;
mod bulk;
mod call;
mod context;
mod crowd;
mod cycle;
mod entry;
mod errand;
mod error;
mod fate;
mod handling;
mod keyed;
mod life;
mod mailbox;
mod names;
pub mod observe;
mod outside;
mod place;
mod placement;
mod pool;
mod registry;
mod reply;
mod route;
mod shutdown;
mod start_all;
mod system;
mod way;

#[doc(hidden)]
#[path = "rt.rs"]
pub mod __rt;

pub use crate::actor::Actor;
pub use crate::address::{Addr, Direct, Here, Local, Port, Remote, SameShard};
pub use crate::bulk::{
    Asking, Batch, Caller, Gather, Recipient, TellEach, TellEachError, TellMany, TellManyError,
    Telling, tell_many,
};
pub use crate::call::{Ask, Call, DynCall, DynCallOf, Tell};
pub use crate::context::Ctx;
pub use crate::crowd::{Broadcast, CrowdError, Group, News, PublishWhenRoom, Subscription, Topic};
pub use crate::errand::{After, Compose, Composed, Errand, Every, Forward};
// What a call becomes on each way.
pub use crate::error::{
    CallError, CallSite, Cycle, Error, HandlerRan, LimitSource, SendError, SpawnError,
    StartFailure, Timeout,
};
pub use crate::fate::PanicReport;
pub use crate::keyed::{AddrByKey, ByKey, Keyed, KeyedBuilder};
pub use crate::life::{
    ActorId, Child, ChildExit, ChildOutcome, Down, ExitReason, Factory, LifeState, OnRootFailure,
    Overdue, Owned, Restart, RestartLimit, Strategy, ToldError,
};
pub use crate::names::{LookupError, Named, Names, RegisterError, ShardNames};
pub use crate::placement::Sharded;
pub use crate::pool::{Leased, Pool, Worker};
pub use crate::registry::Counts;
pub use crate::reply::Reply;
pub use crate::route::{Aimed, HasKeys, Route};
pub use crate::shutdown::{Killed, ShutdownReport};
pub use crate::system::{Builder, Handle, System, spawn, spawn_started};
pub use crate::way::{Suits, Way};
pub use greenroom_macros::{actor, every, message, on, skip};
pub use greenroom_macros::{main, test};
/// The runtime below: tasks, timers, sockets.
pub use greenroom_runtime as runtime;
pub use greenroom_runtime::mesh::CrossShard;
pub use greenroom_runtime::{ShardId, StartError};

/// What a file with actors needs: `use greenroom::prelude::*;`.
///
/// The attributes, and the types that stand in nearly every actor. What fewer need, such as [`Restart`] or [`Topic`], is
/// imported by name.
pub mod prelude {
    pub use crate::{
        Addr, CallError, Ctx, Keyed, Local, Reply, Sharded, System, actor, every, message, on, skip,
    };
}
