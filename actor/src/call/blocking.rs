//! Calls that block their thread, for threads that are no shards.

use std::fmt;

use super::{Answers, Ask, Call, Method, ReplyMode, Tell};
use crate::address::Port;
use crate::error::SendError;

impl<P: Port, M: Answers, A, B: Method<P, M, A>> Call<P, M, A, B> {
    /// Asks, and blocks the thread until the answer is there.
    ///
    /// For threads that are no shards: plain ones, those of a pool, those of an executor that may be blocked. With a limit:
    /// `call.timeout(..).blocking()`; without an answer: `call.tell().blocking()`.
    ///
    /// # Errors
    /// As awaiting the call.
    ///
    /// # Panics
    /// If the calling thread is a shard, which it would block, and with it every actor there.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    ///
    /// #[derive(Default)]
    /// struct Counter { n: u64 }
    ///
    /// #[actor]
    /// impl Counter {
    ///     pub fn add(&mut self, by: u64) -> u64 { self.n += by; self.n }
    /// }
    ///
    /// let system = System::start(1)?;
    /// let counter = system.block_on(system.spawn_on(0, Counter::default))?;
    /// std::thread::spawn(move || {
    ///     counter.add(1).tell().blocking().unwrap();
    ///     assert_eq!(counter.add(2).blocking().unwrap(), 3);
    /// })
    /// .join()
    /// .unwrap();
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    #[track_caller]
    pub fn blocking(self) -> M::Output {
        Ask::new(self).blocking()
    }
}

impl<P: Port, M: Answers, A, B: Method<P, M, A>> Ask<P, M, A, B> {
    /// Blocks the thread until the answer is there, see [`Call::blocking`].
    ///
    /// # Errors
    /// As awaiting it.
    ///
    /// # Panics
    /// If the calling thread is a shard.
    #[track_caller]
    pub fn blocking(self) -> M::Output {
        refuse_shard(&self);
        greenroom_runtime::block_on(self)
    }
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> Tell<P, M, A, B> {
    /// Blocks the thread until the message is accepted, see [`Call::blocking`].
    ///
    /// # Errors
    /// As awaiting it.
    ///
    /// # Panics
    /// If the calling thread is a shard.
    #[track_caller]
    pub fn blocking(self) -> Result<(), SendError<A>> {
        refuse_shard(&self);
        greenroom_runtime::block_on(self)
    }
}

#[track_caller]
fn refuse_shard(call: &dyn fmt::Debug) {
    if let Some(shard) = greenroom_runtime::current_shard() {
        panic!(
            "{call:?} was made with `.blocking()` on {shard}, which it would block, and with it every actor there: \
             `.await` it in an `async` handler or in a task, or send without waiting with `.try_tell()`"
        );
    }
}
