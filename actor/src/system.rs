//! The system: shards with actors on them.

use std::fmt;
use std::io;
use std::ops::{Add, Deref};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::mesh::ResidentId;
use greenroom_runtime::{BackendError, Runtime, ShardId, StartError, time};

use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::error::{SpawnError, SpawnErrorKind};
use crate::fate;
use crate::life;
use crate::mailbox::Mailbox;
use crate::registry::{Counts, Registry};

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
        Builder {
            runtime: greenroom_runtime::Builder::new(),
        }
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

    /// Runs a future on the calling thread until it is done.
    ///
    /// The thread is no shard, so the future need not be `Send` or `'static`; calls in it go to the shards and back.
    /// I/O and timers belong to shards: see [`System::run_on`].
    ///
    /// # Panics
    /// If the calling thread is a shard.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
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

    /// Blocks until `SIGINT` (Ctrl-C) or `SIGTERM` asks the process to end. A second signal then ends it at once.
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
        self.runtime.wait_for_termination()
    }

    /// Stops every actor, waits for them at most as long as the grace, kills the rest, and joins every shard.
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
        let shards: Vec<ShardId> = self.handle.shards().collect();
        let (heir, last_words) = mpsc::channel();
        // All shards drain at the same time: actors of one may need those of another to finish their work.
        let draining: Vec<_> = shards
            .into_iter()
            .map(|shard| {
                let heir = heir.clone();
                self.handle
                    .runtime
                    .spawn_on(shard, move || drain(shard, grace, heir))
            })
            .collect();
        // Tasks that are no actors hear of it now. When they end is up to what follows: they are dropped with the rest.
        self.handle.runtime.begin_shutdown(Duration::MAX);
        let mut report = ShutdownReport::default();
        for drained in draining {
            if let Ok(drained) = self.runtime.block_on(drained) {
                report.add(drained);
            }
        }
        drop(heir);
        report.runtime = self.runtime.shutdown();
        // The end of a shard gives up messages too: those that waited for room, or came too late.
        report.counts = last_words.iter().fold(Counts::default(), Counts::add);
        report
    }
}

impl Deref for System {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

/// What one shard reports of its end.
struct Drained {
    stopped: usize,
    killed: Vec<Killed>,
}

/// Stops the actors of the current shard, and kills those that are not done in time.
async fn drain(shard: ShardId, grace: Duration, heir: mpsc::Sender<Counts>) -> Drained {
    let registry = Registry::current().expect("drained on the shard itself");
    let alive = registry.len();
    let all_ended = async {
        loop {
            registry.actors().iter().for_each(|actor| actor.stop());
            if registry.len() == 0 {
                return;
            }
            // Actors that started meanwhile are asked in the next round.
            let _round_over: Result<(), time::Elapsed> =
                time::timeout(Duration::from_millis(50), registry.until_empty()).await;
        }
    };
    let mut killed = Vec::new();
    if time::timeout(grace, all_ended).await.is_err() {
        for actor in registry.actors() {
            killed.push(Killed {
                actor: actor.name(),
                shard,
                queued: actor.queued(),
            });
            actor.kill();
        }
    }
    registry.bequeath(heir);
    Drained {
        stopped: alive.saturating_sub(killed.len()),
        killed,
    }
}

/// What a shutdown did.
#[derive(Debug, Default)]
pub struct ShutdownReport {
    stopped: usize,
    killed: Vec<Killed>,
    counts: Counts,
    runtime: greenroom_runtime::shutdown::ShutdownReport,
}

/// An actor that did not stop within the grace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killed {
    actor: &'static str,
    shard: ShardId,
    queued: usize,
}

impl Killed {
    /// The name of its type.
    #[must_use]
    pub fn actor(&self) -> &'static str {
        self.actor
    }

    /// The shard it lived on.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// What its mailbox held, the stop included.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} on {} did not stop in time ({} messages waited)",
            self.actor, self.shard, self.queued
        )
    }
}

impl ShutdownReport {
    fn add(&mut self, drained: Drained) {
        self.stopped += drained.stopped;
        self.killed.extend(drained.killed);
    }

    /// Actors that handled what they had accepted and stopped.
    #[must_use]
    pub fn stopped(&self) -> usize {
        self.stopped
    }

    /// Actors that were killed because the grace was over.
    #[must_use]
    pub fn killed(&self) -> &[Killed] {
        &self.killed
    }

    /// What the shards had counted when they ended.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Operations the kernel did not give back in time. Normally zero.
    #[must_use]
    pub fn leaked_operations(&self) -> usize {
        self.runtime.leaked_operations()
    }

    /// What the runtime below has to say: of tasks that are no actors, of each shard, and of shards that got stuck.
    #[must_use]
    pub fn runtime(&self) -> &greenroom_runtime::shutdown::ShutdownReport {
        &self.runtime
    }
}

/// Chooses what a system is like, then starts it.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    runtime: greenroom_runtime::Builder,
}

impl Builder {
    /// How many shards, 1 to 1024; one per CPU this process may use if never called.
    pub fn shards(self, count: usize) -> Self {
        Self {
            runtime: self.runtime.shards(count),
        }
    }

    /// Whether each shard is pinned to a CPU. Default: yes.
    pub fn pin(self, pin: bool) -> Self {
        Self {
            runtime: self.runtime.pin(pin),
        }
    }

    /// How long an idle shard watches for news before it sleeps. Default: zero.
    pub fn spin(self, limit: Duration) -> Self {
        Self {
            runtime: self.runtime.spin(limit),
        }
    }

    /// Everything else, on the runtime's own builder.
    ///
    /// # Examples
    /// ```
    /// use greenroom::System;
    /// let system = System::builder().shards(1).runtime(|runtime| runtime.ring_entries(64)).start()?;
    /// assert_eq!(system.shard_count(), 1);
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn runtime(
        self,
        change: impl FnOnce(greenroom_runtime::Builder) -> greenroom_runtime::Builder,
    ) -> Self {
        Self {
            runtime: change(self.runtime),
        }
    }

    /// Starts the system: all shards, or none.
    ///
    /// # Errors
    /// See [`greenroom_runtime::Builder::start`].
    pub fn start(self) -> Result<System, StartError> {
        fate::watch_panics();
        let runtime = self.runtime.start()?;
        let handle = Handle {
            runtime: runtime.handle().clone(),
        };
        Ok(System { runtime, handle })
    }
}

/// Reaches a system from anywhere. Keeps nothing running.
#[derive(Clone, Debug)]
pub struct Handle {
    runtime: greenroom_runtime::Handle,
}

impl Handle {
    /// The handle of the system whose shard the calling thread is.
    #[must_use]
    pub fn current() -> Option<Self> {
        greenroom_runtime::Handle::current().map(|runtime| Self { runtime })
    }

    /// The number of shards.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.runtime.shard_count()
    }

    /// All shards, in order.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = ShardId> + use<> {
        self.runtime.shards()
    }

    /// The runtime below, for tasks that are no actors.
    #[must_use]
    pub fn runtime(&self) -> &greenroom_runtime::Handle {
        &self.runtime
    }

    /// Starts an actor on a shard and waits until its start hook has run.
    ///
    /// The factory crosses to the shard; the actor is born there and need not be `Send`.
    ///
    /// # Errors
    /// The future resolves to a [`SpawnError`] if the factory or the start hook panics, the hook refuses, there is no
    /// such shard, or the system is shutting down.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the actor running, if it had started.
    pub fn spawn_on<A, S, F>(
        &self,
        shard: S,
        make: F,
    ) -> impl Future<Output = Result<Addr<A>, SpawnError>> + Send + use<A, S, F>
    where
        A: Actor,
        S: Into<ShardId>,
        F: FnOnce() -> A + Send + 'static,
    {
        self.spawn_in(shard.into(), move || bear(make, |_| Ok(())))
    }

    /// Spawns on a shard by a task there, which says how it went.
    pub(crate) fn spawn_in<A, Fut, F>(
        &self,
        shard: ShardId,
        born: F,
    ) -> impl Future<Output = Result<Addr<A>, SpawnError>> + Send + use<A, Fut, F>
    where
        A: Actor,
        Fut: Future<Output = Result<ResidentId<Mailbox<A>>, SpawnErrorKind>> + 'static,
        F: FnOnce() -> Fut + Send + 'static,
    {
        let shards = self.shard_count();
        let born = self.runtime.spawn_on(shard, born);
        async move {
            let outcome = born
                .await
                .unwrap_or(Err(SpawnErrorKind::NoShard { shards }));
            // The id crosses back, not the address: it is `Send` whatever the actor is.
            outcome
                .map(|id| Addr::from_port(Remote::new(id)))
                .map_err(|kind| SpawnError {
                    actor: A::NAME,
                    shard,
                    kind,
                })
        }
    }

    /// Adds up what the shards have counted about their actors.
    pub async fn counts(&self) -> Counts {
        let asked: Vec<_> = self
            .shards()
            .map(|shard| {
                self.runtime.spawn_on(shard, || async {
                    Registry::with(Registry::counts).unwrap_or_default()
                })
            })
            .collect();
        let mut sum = Counts::default();
        for counts in asked {
            sum = sum + counts.await.unwrap_or_default();
        }
        sum
    }
}

/// Makes an actor on the calling shard, and waits until its start hook has run. `adopt` sees its mailbox before anything
/// is sent to it; an actor that is refused there is killed before it has begun.
pub(crate) async fn bear<A: Actor>(
    make: impl FnOnce() -> A,
    adopt: impl FnOnce(&Mailbox<A>) -> Result<(), SpawnErrorKind>,
) -> Result<ResidentId<Mailbox<A>>, SpawnErrorKind> {
    let actor = catch_unwind(AssertUnwindSafe(make))
        .map_err(|payload| SpawnErrorKind::Panicked(fate::report(payload)))?;
    let (started, outcome) = oneshot::channel();
    let addr = life::start(actor, Some(started)).expect("this runs on a shard");
    let id = addr.id();
    if let Some(Err(refused)) = id.visit(adopt) {
        Addr::kill(addr);
        return Err(refused);
    }
    match outcome.await {
        Ok(outcome) => outcome.map(|()| id),
        // Killed before its hook was done.
        Err(oneshot::Canceled) => Err(SpawnErrorKind::NoShard {
            shards: Handle::current().map_or(0, |system| system.shard_count()),
        }),
    }
}

/// Starts an actor on the calling shard. Its address is good at once: what is sent before the start hook has run waits.
///
/// # Panics
/// If the calling thread is no shard.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// struct Pong;
///
/// #[actor]
/// impl Pong {
///     pub fn ping(&self) -> &'static str { "pong" }
/// }
///
/// let system = System::start(1)?;
/// let answer = system.run_on(0, || async { greenroom::spawn(Pong).ping().await });
/// assert_eq!(answer?, "pong");
/// # Ok::<(), greenroom::Error>(())
/// ```
#[track_caller]
pub fn spawn<A: Actor>(actor: A) -> Addr<A> {
    life::start(actor, None).unwrap_or_else(|| {
        panic!("`greenroom::spawn` was called on a thread that is no shard: use `System::spawn_on`")
    })
}
