//! A thread-per-core runtime: pinned shards, each with its own io_uring, and no locks on the way.
//!
//! A [`Runtime`] is a set of *shards*. A shard is a thread, pinned to one CPU, with its own run queue, timers and
//! io_uring. A task is born on one shard and stays there, so it need not be `Send`, and nothing it does needs a lock.
//! Shards talk through rings with one writer and one reader each; a sleeping shard is woken through a doorbell, at most
//! once per sleep.
//!
//! ```
//! use greenroom_runtime::{Builder, Handle, current_shard, spawn};
//!
//! let runtime = Builder::new().shards(2).start()?;
//! runtime.run_on(0, || async {
//!     let local = spawn(async { current_shard() });
//!     let remote = Handle::current().unwrap().spawn_on(1, || async { current_shard() });
//!     assert_eq!(local.await.unwrap(), Some(0.into()));
//!     assert_eq!(remote.await.unwrap(), Some(1.into()));
//! });
//! # Ok::<(), greenroom_runtime::StartError>(())
//! ```
//!
//! Reading order: [`task`], `shard`, `inject`, [`mesh`], `ring`, [`sync`], [`time`], [`net`], [`blocking`], [`fs`], [`signal`],
//! [`process`], [`shutdown`], then `launch` and `builder`.

#![doc(test(attr(deny(warnings))))]
#![warn(clippy::unwrap_used)]

mod block_on;
pub mod blocking;
mod builder;
mod clock;
mod error;
mod float;
pub mod fs;
mod inject;
mod launch;
pub mod mesh;
pub mod net;
pub mod observe;
mod primitives;
pub mod process;
mod ring;
mod rng;
mod runtime;
mod shard;
pub mod shutdown;
pub mod signal;
pub mod sync;
mod sys;
pub mod task;
pub mod time;

pub use block_on::block_on;
pub use builder::Builder;
pub use error::StartError;
pub use float::{FloatCounts, FloatHandle, offload, spawn_anywhere};
pub use ring::{Backend, BackendError, buffer};
pub use rng::random;
pub use runtime::{Handle, Runtime};
pub use shard::{ShardCounts, ShardId, ShardMetrics, current_shard, extension};
pub use task::{JoinError, JoinHandle, RemoteJoinHandle, spawn, yield_now};
