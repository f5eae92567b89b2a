//! A running runtime, and handles to it.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::block_on;
use crate::blocking::{self, BlockingCounts, BlockingHandle};
use crate::mesh::team::Team;
use crate::observe::watchdog::Watchdog;
use crate::ring::BackendError;
use crate::shard::{ShardId, context};
use crate::task::{self, RemoteJoinHandle};

/// How long jobs of the blocking pool get to finish when the shards have ended.
const JOBS_LIMIT: Duration = Duration::from_secs(5);

/// The shards, running. Dropping it stops and joins them.
///
/// # Examples
/// ```
/// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
/// let on_one = runtime.run_on(1, || async { 6 * 7 });
/// assert_eq!(on_one, 42);
/// runtime.shutdown();
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub struct Runtime {
    handle: Handle,
    threads: Vec<thread::JoinHandle<()>>,
    watchdog: Option<Watchdog>,
    backend: &'static str,
    backend_reason: Option<BackendError>,
}

/// What a shutdown leaves to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownReport {
    leaked_operations: usize,
    dropped_jobs: usize,
    stuck_jobs: usize,
}

impl ShutdownReport {
    /// Operations the kernel did not give back in time; their memory was leaked, not freed. Normally zero.
    #[must_use]
    pub fn leaked_operations(&self) -> usize {
        self.leaked_operations
    }

    /// Jobs of the blocking pool that were still in line, and never ran.
    #[must_use]
    pub fn dropped_jobs(&self) -> usize {
        self.dropped_jobs
    }

    /// Jobs of the blocking pool that still ran at the deadline. Their threads were left behind.
    #[must_use]
    pub fn stuck_jobs(&self) -> usize {
        self.stuck_jobs
    }
}

impl Runtime {
    pub(crate) fn new(
        team: Arc<Team>,
        threads: Vec<thread::JoinHandle<()>>,
        watchdog: Option<Watchdog>,
        backend: &'static str,
        backend_reason: Option<BackendError>,
    ) -> Self {
        Self {
            handle: Handle { team },
            threads,
            watchdog,
            backend,
            backend_reason,
        }
    }

    /// A handle that can be cloned and sent anywhere.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The number of shards.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.handle.shard_count()
    }

    /// The name of the I/O backend that was chosen at start.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// Why the backend is not io_uring, if the choice was open and it does not work here.
    ///
    /// Said here and nowhere else: a server that wants it in its log writes it there.
    ///
    /// # Examples
    /// ```
    /// let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
    /// if let Some(reason) = runtime.backend_reason() {
    ///     println!("running on {}: {reason}", runtime.backend());
    /// }
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[must_use]
    pub fn backend_reason(&self) -> Option<&BackendError> {
        self.backend_reason.as_ref()
    }

    /// Runs a future on the calling thread until it is done.
    ///
    /// The thread is no shard: I/O, timers and `spawn` belong inside [`Runtime::run_on`] or [`Handle::spawn_on`].
    ///
    /// # Panics
    /// If the calling thread is a shard: it would block everything on it.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on::block_on(future)
    }

    /// Runs a future on a shard and blocks the calling thread until it is done.
    ///
    /// The closure crosses to the shard; the future it makes need not be `Send`.
    ///
    /// # Panics
    /// If the future panics, with its payload; if there is no such shard; if the calling thread is a shard; if the
    /// runtime is shut down meanwhile.
    #[track_caller]
    pub fn run_on<F, Fut>(&self, shard: impl Into<ShardId>, make: F) -> Fut::Output
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let shard = shard.into();
        assert!(
            crate::current_shard().is_none(),
            "`run_on` blocks: call it from a thread that is no shard"
        );
        assert!(
            shard.index() < self.shard_count(),
            "{shard} does not exist: there are {}",
            self.shard_count()
        );
        match self.block_on(self.handle.spawn_on(shard, make)) {
            Ok(output) => output,
            Err(error) => match error.try_into_panic() {
                Ok(payload) => resume_unwind(payload),
                Err(_) => panic!("{shard} ended before the work on it did"),
            },
        }
    }

    /// Stops every shard and joins its thread: tasks are dropped, operations cancelled, and awaited for at most five
    /// seconds. Then the blocking pool ends: jobs in line are dropped, those that run get another five seconds.
    ///
    /// # Panics
    /// If a shard's own loop panicked, with its payload; if called on a shard of this runtime.
    pub fn shutdown(mut self) -> ShutdownReport {
        match self.stop() {
            Ok(report) => report,
            Err(payload) => resume_unwind(payload),
        }
    }

    fn is_own_shard(&self) -> bool {
        self.handle.is_own_shard()
    }

    fn stop(&mut self) -> Result<ShutdownReport, Box<dyn Any + Send>> {
        let here = self.is_own_shard();
        assert!(
            !here,
            "a runtime cannot be shut down from one of its own shards: it would wait for itself"
        );
        let team = &self.handle.team;
        team.stop(None);
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.stop();
        }
        let mut failure = None;
        for thread in self.threads.drain(..) {
            if let Err(payload) = thread.join() {
                failure.get_or_insert(payload);
            }
        }
        let jobs = team.blocking().close(JOBS_LIMIT);
        match team.take_failure().or(failure) {
            Some(payload) => Err(payload),
            None => Ok(ShutdownReport {
                leaked_operations: team.leaked(),
                dropped_jobs: jobs.dropped,
                stuck_jobs: jobs.stuck,
            }),
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.is_own_shard() {
            // Dropped by one of its own tasks: it stops, but cannot wait for itself. The threads end on their own.
            self.handle.team.stop(None);
        } else if !self.threads.is_empty() {
            // A failure was printed by the panic hook; throwing it from a drop could abort the process.
            drop(catch_unwind(AssertUnwindSafe(|| self.stop())));
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("shards", &self.shard_count())
            .field("backend", &self.backend)
            .finish()
    }
}

/// Reaches the shards of a runtime from anywhere. Keeps nothing running.
#[derive(Clone)]
pub struct Handle {
    team: Arc<Team>,
}

impl Handle {
    /// The handle of the runtime whose shard the calling thread is.
    #[must_use]
    pub fn current() -> Option<Self> {
        context::with(|shard| Self {
            team: shard.team().clone(),
        })
    }

    /// The number of shards.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.team.len()
    }

    /// All shards, in order.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = ShardId> + use<> {
        let count = u16::try_from(self.team.len()).expect("a runtime has at most 1024 shards");
        (0..count).map(ShardId::from)
    }

    /// Whether the runtime is being shut down, or has been.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.team.is_stopping()
    }

    /// Runs a future on a shard. The closure crosses; the future it makes need not be `Send`.
    ///
    /// Dropping the returned handle detaches the task, which goes on.
    ///
    /// # Errors
    /// The handle resolves to a [`JoinError`](task::JoinError) if the task panicked, or was cancelled: by its handle, or
    /// because the shard shut down or does not exist.
    ///
    /// # Examples
    /// ```
    /// use greenroom_runtime::{Builder, Handle, current_shard};
    /// let runtime = Builder::new().shards(2).start()?;
    /// let there = runtime.run_on(0, || async {
    ///     let handle = Handle::current().unwrap();
    ///     handle.spawn_on(1, || async { current_shard() }).await.unwrap()
    /// });
    /// assert_eq!(there, Some(1.into()));
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F, Fut>(
        &self,
        shard: impl Into<ShardId>,
        make: F,
    ) -> RemoteJoinHandle<Fut::Output>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        task::spawn_on(self, shard.into(), task::Origin::here(), make)
    }

    /// Runs a closure that may block on a thread of the runtime's [blocking pool](crate::blocking).
    ///
    /// As [`blocking::run`](crate::blocking::run), from any thread.
    ///
    /// # Errors
    /// The future resolves to a [`JoinError`](task::JoinError) if the closure panicked, or if the runtime shut down before it
    /// started.
    ///
    /// # Cancel safety
    /// Dropping the future takes a job that has not started out of the line.
    ///
    /// # Examples
    /// ```
    /// let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
    /// let job = runtime.handle().run_blocking(|| 6 * 7);
    /// assert_eq!(runtime.block_on(job).unwrap(), 42);
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    pub fn run_blocking<F, T>(&self, work: F) -> BlockingHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        blocking::submit(self.team.blocking(), work)
    }

    /// What the blocking pool has in hand, and has done so far.
    #[must_use]
    pub fn blocking_counts(&self) -> BlockingCounts {
        self.team.blocking().counts()
    }

    /// Whether the calling thread is a shard of this runtime.
    pub(crate) fn is_own_shard(&self) -> bool {
        context::with(|shard| Arc::ptr_eq(shard.team(), &self.team)) == Some(true)
    }

    pub(crate) fn team_arc(&self) -> &Arc<Team> {
        &self.team
    }

    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// Hands a closure to a shard; false if there is no such shard any more.
    pub(crate) fn run(&self, shard: ShardId, job: Box<dyn FnOnce() + Send>) -> bool {
        let Some(number) = self.team.number(shard) else {
            return false;
        };
        let team = self.team.clone();
        let checked = Box::new(move || {
            // After a shutdown the number may belong to a shard of another runtime: the job is dropped there.
            let ours = context::with(|shard| Arc::ptr_eq(shard.team(), &team));
            if ours == Some(true) {
                job();
            }
        });
        crate::shard::registry::shared(number).is_some_and(|shared| shared.submit(checked).is_ok())
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("shards", &self.shard_count())
            .finish_non_exhaustive()
    }
}
