//! I/O: operations in flight, and the ring that runs them.
//!
//! Reading order: [`op`] tells the life of an operation; [`inflight`] keeps the books, over [`record`], [`key`] and [`payload`];
//! [`backend`] is the border to the kernel; [`uring`] with [`translate`], and [`epoll`], are what lies behind it, [`choice`]
//! says which of them, and [`probe`] has the errors of getting there. [`driver`] puts them together for the shard,
//! [`future`] for those who await, and [`multi`] for those who await operations that repeat themselves. [`buffer`] says what
//! can be read into and written from; [`pool`] has the shard's own receive buffers, [`buf_ring`] the ring through which the
//! kernel takes them, and [`pooled`] is how they are lent out. [`received`] is what a stream received and nobody asked for
//! yet. [`socket`] keeps the directions of a socket in order, [`mod@file`] keeps an open file open, and [`ops`] has one file for
//! each operation.
//!
//! Everything here belongs to one shard and stays on its thread. The shard owns the [`Driver`] in a `RefCell`, takes
//! turns with it, and runs the [`Effects`] of a turn after the borrow. Tasks reach it through the current shard.

pub(crate) mod backend;
mod buf_ring;
pub mod buffer;
mod choice;
mod driver;
mod epoll;
#[cfg(test)]
mod fake;
pub(crate) mod file;
mod future;
mod inflight;
mod key;
pub(crate) mod multi;
mod op;
pub(crate) mod ops;
mod payload;
mod pool;
pub(crate) mod pooled;
mod probe;
pub(crate) mod received;
mod record;
pub(crate) mod socket;
#[cfg(test)]
mod tests;
mod translate;
mod uring;

pub(crate) use self::backend::{AnyBackend, Wait};
pub use self::choice::Backend;
pub(crate) use self::choice::VARIABLE;
pub(crate) use self::driver::Driver;
pub(crate) use self::future::{Op, is_interrupted};
pub(crate) use self::op::Effects;
pub(crate) use self::pool::BufferPoolConfig;
pub use self::probe::BackendError;

/// The size of a shard's ring, and where its helpers may run.
#[derive(Clone, Debug)]
pub(crate) struct RingConfig {
    /// Entries of the submission queue: how many operations one enter can hand over. Rounded up to a power of two,
    /// and halved while memory is short.
    pub(crate) sq_entries: u32,
    /// Entries of the completion queue, at least twice the submission queue's.
    pub(crate) cq_entries: u32,
    /// The CPUs the kernel's helper threads of this ring may use; empty to leave them where the shard is.
    pub(crate) worker_cpus: Vec<usize>,
    /// The shard's receive buffers. They are made when the first one is needed.
    pub(crate) pool: BufferPoolConfig,
}

impl Default for RingConfig {
    /// About 48 KiB of locked memory.
    fn default() -> RingConfig {
        RingConfig {
            sq_entries: 256,
            cq_entries: 2048,
            worker_cpus: Vec::new(),
            pool: BufferPoolConfig::default(),
        }
    }
}
