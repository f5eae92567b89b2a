//! A running runtime, and handles to it.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::blocking::{self, BlockingCounts, BlockingHandle};
use crate::mesh::team::Team;
use crate::observe::watchdog::Watchdog;
use crate::ring::BackendError;
use crate::shard::{ShardId, context};
use crate::shutdown::stop::Payload;
use crate::shutdown::{Phase, ShutdownReport, ShutdownSignal};
use crate::signal;
use crate::task::{self, RemoteJoinHandle, discard_payload};

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

    /// Runs a future, or what becomes one, on the calling thread until it is done.
    ///
    /// The thread is no shard: I/O, timers and `spawn` belong inside [`Runtime::run_on`] or [`Handle::spawn_on`].
    ///
    /// # Panics
    /// If the calling thread is a shard: it would block everything on it.
    #[track_caller]
    pub fn block_on<F: IntoFuture>(&self, future: F) -> F::Output {
        crate::block_on(future)
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

    /// Shuts down without grace: tasks are dropped at once. Otherwise as [`shutdown_within`](Self::shutdown_within).
    ///
    /// # Panics
    /// As [`shutdown_within`](Self::shutdown_within).
    #[track_caller]
    pub fn shutdown(self) -> ShutdownReport {
        self.shutdown_within(Duration::ZERO)
    }

    /// Tells the tasks, waits for them at most as long as the grace, drops the rest, and ends every shard.
    ///
    /// Tasks hear of it through [`shutdown_signal`](crate::shutdown::shutdown_signal). The grace ends early when no task is
    /// left. From then on every phase has [its limit](crate::Builder::shutdown_limit), so this returns within a known
    /// time, whatever the tasks do. Then the blocking pool ends: jobs in line are dropped, and those that run have the
    /// same limit.
    ///
    /// # Panics
    /// If a shard's own loop panicked, with its payload; if called on a shard of this runtime.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
    /// runtime.run_on(0, || async {
    ///     greenroom_runtime::spawn(greenroom_runtime::time::sleep(Duration::from_millis(1))).detach();
    /// });
    /// let report = runtime.shutdown_within(Duration::from_secs(10));
    /// assert_eq!(report.dropped_tasks(), 0);
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[track_caller]
    pub fn shutdown_within(mut self, grace: Duration) -> ShutdownReport {
        assert!(
            !self.is_own_shard(),
            "a runtime cannot be shut down from one of its own shards: it would wait for itself; use `Handle::begin_shutdown`"
        );
        match self.stop(grace) {
            Ok(report) => report,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Blocks until `SIGINT` (Ctrl-C) or `SIGTERM` asks the process to end, or the shutdown has begun by other means.
    ///
    /// What to do then is up to the caller, usually [`shutdown_within`](Self::shutdown_within). Meanwhile, nobody else
    /// listening, a second signal ends the process at once.
    ///
    /// # Errors
    /// If the signals cannot be listened for.
    ///
    /// # Panics
    /// If the calling thread is a shard.
    ///
    /// # Examples
    /// ```no_run
    /// use std::time::Duration;
    /// let runtime = greenroom_runtime::Builder::new().start()?;
    /// runtime.wait_for_termination()?;
    /// let report = runtime.shutdown_within(Duration::from_secs(10));
    /// for stuck in report.stuck() {
    ///     eprintln!("{stuck}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn wait_for_termination(&self) -> io::Result<()> {
        let mut termination = signal::termination()?;
        let mut begun = self.handle.shutdown_signal();
        self.block_on(poll_fn(|cx| match termination.poll_recv(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => Pin::new(&mut begun).poll(cx),
        }));
        Ok(())
    }

    fn is_own_shard(&self) -> bool {
        self.handle.is_own_shard()
    }

    fn stop(&mut self, grace: Duration) -> Result<ShutdownReport, Payload> {
        let team = &self.handle.team;
        if grace.is_zero() {
            team.cancel(None);
        } else {
            team.drain(grace);
        }
        team.stop().await_cancelling();
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.stop();
        }
        // However it came to that, and in case a shard that is asleep was overlooked.
        team.notify_all();
        team.stop().await_end(|| team.notify_all());
        let mut failure = None;
        for (shard, thread) in self.handle.shards().zip(self.threads.drain(..)) {
            // The thread of a shard that was given up is left to itself.
            if team.stop().has_closed(shard)
                && let Err(payload) = thread.join()
            {
                failure.get_or_insert(payload);
            }
        }
        let jobs = team.blocking().close(team.stop().limit());
        let report = ShutdownReport::new(team.stop().reports(), jobs);
        match team.stop().take_failure().or(failure) {
            Some(payload) => {
                report.warn();
                Err(payload)
            }
            None => Ok(report),
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.is_own_shard() {
            // Dropped by one of its own tasks: it stops, but cannot wait for itself. The threads end on their own.
            self.handle.team.cancel(None);
        } else if !self.threads.is_empty() {
            // A failure was printed by the panic hook; throwing it from a drop could abort the process.
            match self.stop(Duration::ZERO) {
                Ok(report) => report.warn(),
                Err(payload) => discard_payload(payload),
            }
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
        self.team.shards()
    }

    /// The shard whose turn it is: `turn` modulo the number of shards, so every number has one.
    ///
    /// # Examples
    /// ```
    /// use greenroom_runtime::{Builder, current_shard};
    /// let runtime = Builder::new().shards(2).start()?;
    /// let handle = runtime.handle();
    /// for turn in 0..4_usize {
    ///     let ran = handle.spawn_on(handle.shard(turn), || async { current_shard().unwrap().index() });
    ///     assert_eq!(runtime.block_on(ran).unwrap(), turn % 2);
    /// }
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[must_use]
    pub fn shard(&self, turn: usize) -> ShardId {
        ShardId::at(turn % self.shard_count())
    }

    /// The runtime's one value of type `T`, made on first use; it lives as long as the runtime and its handles.
    ///
    /// For layers above that keep something once for all shards. It takes a lock: not for every message. What is kept
    /// for each shard is in [`extension`](crate::extension()). The value must not hold a handle of the runtime, which would keep
    /// both alive.
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
    /// let visits = runtime.handle().extension(AtomicUsize::default);
    /// runtime.run_on(1, || async {
    ///     let handle = greenroom_runtime::Handle::current().expect("on a shard");
    ///     handle.extension(AtomicUsize::default).fetch_add(1, Ordering::Relaxed);
    /// });
    /// assert_eq!(visits.load(Ordering::Relaxed), 1);
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.team.extension(make)
    }

    /// Begins to shut the runtime down: tasks hear of it, and have as long as the grace to finish.
    ///
    /// When they are done, or the grace is over, the shards end, whether anybody waits for them or not; a grace of
    /// [`Duration::MAX`] leaves it to whoever calls [`Runtime::shutdown_within`]. From now on tasks may be spawned from
    /// tasks of the runtime only: [`spawn_on`](Self::spawn_on) from outside gives a handle that resolves to cancelled.
    ///
    /// It may be called again, which can only shorten the grace.
    ///
    /// # Examples
    /// ```
    /// use greenroom_runtime::{Builder, Handle};
    /// use std::time::Duration;
    /// let runtime = Builder::new().shards(2).start()?;
    /// runtime.run_on(1, || async {
    ///     Handle::current().unwrap().begin_shutdown(Duration::from_secs(1));
    /// });
    /// let late = runtime.handle().spawn_on(0, || async {});
    /// assert!(runtime.block_on(late).unwrap_err().is_cancelled());
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    pub fn begin_shutdown(&self, grace: Duration) {
        self.team.drain(grace);
    }

    /// Whether the runtime is being shut down, or has been.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.team.stop().phase() > Phase::Running
    }

    /// Waits until the shutdown of the runtime begins, on any thread.
    pub fn shutdown_signal(&self) -> ShutdownSignal {
        ShutdownSignal::new(self.team.clone())
    }

    /// Runs a future on a shard. The closure crosses; the future it makes need not be `Send`.
    ///
    /// Dropping the returned handle detaches the task, which goes on. A shard that is computed, and not written down, comes
    /// from [`shard`](Self::shard), or from [`shards`](Self::shards).
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
    /// As [`blocking::run`], from any thread.
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
    #[must_use]
    pub fn is_own_shard(&self) -> bool {
        context::with(|shard| Arc::ptr_eq(shard.team(), &self.team)) == Some(true)
    }

    /// Whether the calling thread may spawn tasks: its own shards may until the end, others until that begins.
    pub(crate) fn admits(&self) -> bool {
        !self.is_shutting_down() || self.is_own_shard()
    }

    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// Hands a closure to a shard; false if there is no such shard any more.
    pub(crate) fn run(&self, shard: ShardId, job: Box<dyn FnOnce() + Send>) -> bool {
        let Some(number) = self.team.number(shard) else {
            return false;
        };
        let ours = self.clone();
        let checked = Box::new(move || {
            // After a shutdown the number may belong to a shard of another runtime: the job is dropped there.
            if ours.is_own_shard() {
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
