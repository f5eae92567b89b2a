//! The system: shards with actors on them.
//!
//! A [`System`] owns its shards; [`Handle`]s reach them and keep nothing running. What can be chosen is with the [`Builder`]; how an
//! actor is born, on its shard, in `birth`.

mod birth;
mod builder;
mod handle;

pub(crate) use self::birth::bear;
pub use self::birth::{spawn, spawn_started};
pub use self::builder::Builder;
pub use self::handle::Handle;

use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use greenroom_runtime::observe::Found;
use greenroom_runtime::{BackendError, Runtime, ShardId, StartError};

use crate::life::Alarm;
use crate::shutdown::{self, ShutdownReport};

/// A running system. Dropping it stops it without grace.
///
/// It dereferences to its [`Handle`], where most methods are.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
/// use std::time::Duration;
///
/// struct Greeter;
///
/// #[actor]
/// impl Greeter {
///     pub fn greet(&self, name: String) -> String { format!("hello {name}") }
/// }
///
/// let system = System::start(2)?;
/// let hello = system.block_on(async {
///     let greeter = system.spawn_on(1, || Greeter).await?;
///     Ok::<_, greenroom::Error>(greeter.greet("world".into()).await?)
/// })?;
/// assert_eq!(hello, "hello world");
/// let report = system.shutdown(Duration::from_secs(1));
/// assert_eq!((report.stopped(), report.killed().len()), (1, 0));
/// # Ok::<(), greenroom::Error>(())
/// ```
#[derive(Debug)]
pub struct System {
    runtime: Runtime,
    handle: Handle,
    alarm: Arc<Alarm>,
}

impl System {
    /// Starts a system of so many shards, each pinned to a CPU: all of them, or none.
    ///
    /// # Errors
    /// See [`greenroom_runtime::Builder::start`].
    pub fn start(shards: usize) -> Result<Self, StartError> {
        Self::builder().shards(shards).start()
    }

    /// A builder for everything that can be chosen.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A handle that can be cloned and sent anywhere.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The name of the I/O backend.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        self.runtime.backend()
    }

    /// Why the backend is not io_uring, if the choice was open and it does not work here.
    #[must_use]
    pub fn backend_reason(&self) -> Option<&BackendError> {
        self.runtime.backend_reason()
    }

    /// Runs a future, or a call, on the calling thread until it is done.
    ///
    /// The thread is no shard, so the future need not be `Send` or `'static`; calls in it go to the shards and back.
    /// I/O and timers belong to shards: see [`System::run_on`].
    ///
    /// # Panics
    /// If the calling thread is a shard.
    #[track_caller]
    pub fn block_on<F: IntoFuture>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Runs a future on a shard and blocks the calling thread until it is done.
    ///
    /// # Panics
    /// As [`Runtime::run_on`].
    #[track_caller]
    pub fn run_on<F, Fut>(&self, shard: impl Into<ShardId>, make: F) -> Fut::Output
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        self.runtime.run_on(shard, make)
    }

    /// Blocks until `SIGINT` (Ctrl-C) or `SIGTERM` asks the process to end, or the failure of an actor does, see
    /// [`Builder::on_root_failure`]. A second signal then ends it at once.
    ///
    /// # Errors
    /// If the signals cannot be listened for.
    ///
    /// # Panics
    /// If the calling thread is a shard.
    ///
    /// # Examples
    /// ```no_run
    /// use greenroom::prelude::*;
    /// use std::time::Duration;
    /// let system = System::start(2)?;
    /// system.wait_for_termination()?;
    /// let report = system.shutdown(Duration::from_secs(10));
    /// assert_eq!(report.killed().len(), 0);
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    #[track_caller]
    pub fn wait_for_termination(&self) -> io::Result<()> {
        let mut termination = greenroom_runtime::signal::termination()?;
        let mut begun = self.handle.runtime().shutdown_signal();
        self.runtime.block_on(std::future::poll_fn(|cx| {
            let is_over = termination.poll_recv(cx).is_ready()
                || Pin::new(&mut begun).poll(cx).is_ready()
                || self.alarm.poll_rung(cx).is_ready();
            if is_over {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        Ok(())
    }

    /// Stops every actor, waits for them at most as long as the grace, kills the rest, and joins every shard.
    ///
    /// Actors without a parent are stopped; each stops its children in the reverse order of their start, before it ends itself.
    ///
    /// Tasks that are no actors hear of it, see [`greenroom_runtime::shutdown`]. A shard that does not end in time is given
    /// up and reported.
    ///
    /// # Panics
    /// If a shard's own loop panicked, with its payload. If the calling thread is a shard of this system.
    pub fn shutdown(self, grace: Duration) -> ShutdownReport {
        assert!(
            greenroom_runtime::current_shard().is_none(),
            "a system is shut down from outside: on a shard this would wait for itself"
        );
        shutdown::run(self.runtime, &self.handle, grace)
    }

    /// Waits until nothing is left to do: no message waits or is on its way, and no handler runs.
    ///
    /// Work that comes from elsewhere, of a timer, a socket or a thread outside, is none until it has arrived as a message. So this
    /// is for systems that are fed by the caller: send, drain, look at the result. It does not stop anything.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    ///
    /// #[derive(Default)]
    /// struct Sum { total: u64 }
    ///
    /// #[actor]
    /// impl Sum {
    ///     pub fn add(&mut self, by: u64) { self.total += by }
    ///     pub fn total(&self) -> u64 { self.total }
    /// }
    ///
    /// struct Relay { to: Addr<Sum> }
    ///
    /// #[actor]
    /// impl Relay {
    ///     pub fn add(&mut self, by: u64) { self.to.add(by).try_tell().ok(); }
    /// }
    ///
    /// let system = System::start(2)?;
    /// system.block_on(async {
    ///     let sum = system.spawn_on(0, Sum::default).await?;
    ///     let relay = system.spawn_on(1, move || Relay { to: sum }).await?;
    ///     for by in 1..=100 {
    ///         relay.add(by).tell().await?;
    ///     }
    ///     system.drain().await;
    ///     assert_eq!(sum.total().await?, 5050);
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub async fn drain(&self) {
        shutdown::until_quiet(&self.handle).await;
    }
}

impl System {
    pub(crate) fn survey<T: Send + 'static>(&self, question: fn() -> T) -> Vec<Found<T>> {
        self.runtime.survey(question)
    }
}

impl Deref for System {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}
