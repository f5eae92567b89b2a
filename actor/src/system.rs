//! The system: shards with actors on them.

use std::io;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::observe::Found;
use greenroom_runtime::{BackendError, Runtime, ShardId, StartError};

use crate::abort;
use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::error::{SpawnError, SpawnErrorKind};
use crate::fate;
use crate::life::{self, Alarm, Newborn, OnRootFailure};
use crate::mailbox::Mailbox;
use crate::observe::{DeadLetter, DeadLetterHook};
use crate::registry::{Counts, Registry, Settings};
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
        Builder {
            runtime: greenroom_runtime::Builder::new().reply_limit(Some(ASK_DEADLINE)),
            settings: None,
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
        let mut begun = self.handle.runtime.shutdown_signal();
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

/// How long an ask waits if neither the call nor the builder says otherwise.
const ASK_DEADLINE: Duration = Duration::from_secs(30);

/// Chooses what a system is like, then starts it.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    runtime: greenroom_runtime::Builder,
    /// Each shard hears of them before anything else, if they are not what it takes for granted.
    settings: Option<Settings>,
}

impl Builder {
    /// How many shards, 1 to 1024; one per CPU this process may use if never called.
    pub fn shards(self, count: usize) -> Self {
        self.runtime(|runtime| runtime.shards(count))
    }

    /// Whether each shard is pinned to a CPU. Default: yes.
    pub fn pin(self, pin: bool) -> Self {
        self.runtime(|runtime| runtime.pin(pin))
    }

    /// How long an idle shard watches for news before it sleeps. Default: zero.
    pub fn spin(self, limit: Duration) -> Self {
        self.runtime(|runtime| runtime.spin(limit))
    }

    /// How long an actor that was asked to stop may take before it is killed. Default: 5 seconds.
    ///
    /// The time runs while it handles what it had accepted, and while its stopping hook runs, but not while it waits for its children
    /// to end, which have their own. [`Duration::MAX`] lets it take as long as it likes.
    pub fn stop_grace(self, grace: Duration) -> Self {
        self.set(|settings| settings.stop_grace = grace)
    }

    /// What to do when an actor without a parent fails. Default: nothing but to count it.
    pub fn on_root_failure(self, policy: OnRootFailure) -> Self {
        self.set(|settings| settings.on_root_failure = policy)
    }

    /// Calls a function for each message that reached no actor, or was given up by one that ended.
    ///
    /// It runs on the actor's shard, where the message is dropped; it should be short. It may send messages and spawn. A
    /// panic in it is contained.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use std::sync::mpsc;
    ///
    /// struct Brief;
    ///
    /// #[actor]
    /// impl Brief {
    ///     pub fn greet(&self) {}
    /// }
    ///
    /// let (heard, letters) = mpsc::channel();
    /// let system = System::builder()
    ///     .shards(2)
    ///     .on_dead_letter(move |letter| drop(heard.send(letter.to_string())))
    ///     .start()?;
    /// let brief = system.block_on(system.spawn_on(1, || Brief))?;
    /// Addr::kill(brief);
    /// assert!(system.block_on(brief.greet().into_future()).is_err());
    /// assert!(letters.recv()?.starts_with("Brief::greet on shard 1 was not handled"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_dead_letter(self, hook: impl Fn(&DeadLetter) + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.on_dead_letter = Some(DeadLetterHook::new(hook)))
    }

    /// Takes the time that handlers and hooks run, for the [metrics](crate::observe::TypeMetrics::busy_ns) of actor types.
    ///
    /// Off by default: the clock is then read twice for each stretch of messages, and for each time that a handler goes on, which
    /// takes about 50 ns; and an ask of the same shard is never handled on the stack of its asker, whose time it would be.
    pub fn measure_busy_time(self) -> Self {
        self.set(|settings| settings.is_busy_time_measured = true)
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(self.settings.get_or_insert_default());
        self
    }

    /// How long an ask waits that does not say itself how long. `None`: for ever. Default: 30 seconds.
    ///
    /// It is kept coarsely, so it costs nothing for each call: an ask may wait about a tenth of a second longer. A call says
    /// otherwise with [`crate::Call::timeout`], [`crate::Call::deadline`] and [`crate::Call::no_timeout`].
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use std::time::Duration;
    ///
    /// #[derive(Default)]
    /// struct Silent { kept: Vec<Reply<u32>> }
    ///
    /// #[actor]
    /// impl Silent {
    ///     pub fn ask(&mut self, reply: Reply<u32>) { self.kept.push(reply); }
    /// }
    ///
    /// let system = System::builder().shards(1).ask_deadline(Duration::from_millis(20)).start()?;
    /// let silent = system.block_on(system.spawn_on(0, Silent::default))?;
    /// let error = silent.ask().blocking().unwrap_err();
    /// assert!(error.is_timeout() && error.to_string().contains("default deadline 20 ms"));
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn ask_deadline(self, limit: impl Into<Option<Duration>>) -> Self {
        self.runtime(|runtime| runtime.reply_limit(limit.into()))
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
            ..self
        }
    }

    /// Starts the system: all shards, or none.
    ///
    /// # Errors
    /// See [`greenroom_runtime::Builder::start`].
    pub fn start(self) -> Result<System, StartError> {
        fate::watch_panics();
        abort::warn();
        let runtime = self.runtime.start()?;
        let handle = Handle {
            runtime: runtime.handle().clone(),
        };
        for shard in self
            .settings
            .is_some()
            .then(|| handle.shards())
            .into_iter()
            .flatten()
        {
            let settings = self.settings.clone().unwrap_or_default();
            // In front of everything that is sent there by whoever gets the system.
            let configured = handle.runtime.spawn_on(shard, move || async move {
                Registry::with(|registry| registry.configure(settings));
            });
            drop(configured);
        }
        Ok(System {
            runtime,
            handle,
            alarm: self.settings.unwrap_or_default().alarm,
        })
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
    /// The future resolves to a [`SpawnError`] if the factory or the start hook panics, the hook refuses, the actor is
    /// killed before the hook is done, there is no such shard, or the system is shutting down.
    ///
    /// # Cancel safety
    /// Dropping the future stops the actor, whose address nobody has then.
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
        Fut: Future<Output = Result<Newborn<A>, SpawnErrorKind>> + 'static,
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
                .map(|born| Addr::from_port(Remote::new(born.grown_up())))
                .map_err(|kind| SpawnError {
                    actor: A::NAME,
                    shard,
                    kind,
                })
        }
    }

    /// Stops all actors without a parent, on their shards.
    pub(crate) fn stop_all(&self) {
        for shard in self.shards() {
            drop(self.runtime.spawn_on(shard, || async {
                for actor in Registry::with(Registry::actors).into_iter().flatten() {
                    if actor.is_root() {
                        actor.stop();
                    }
                }
            }));
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
) -> Result<Newborn<A>, SpawnErrorKind> {
    let actor = catch_unwind(AssertUnwindSafe(make))
        .map_err(|payload| SpawnErrorKind::Panicked(fate::report(payload)))?;
    let (started, outcome) = oneshot::channel();
    let addr = life::start(actor, Some(started)).expect("this runs on a shard");
    let id = addr.id();
    let born = Newborn::new(id);
    if let Some(Err(refused)) = id.visit(adopt) {
        Addr::kill(addr);
        return Err(refused);
    }
    born.started(outcome).await
}

/// Starts an actor on the calling shard, and waits until its start hook has run.
///
/// # Errors
/// The future resolves to a [`SpawnError`] if the start hook panics or refuses.
///
/// # Panics
/// If the calling thread is no shard.
///
/// # Cancel safety
/// Dropping the future stops the actor, whose address nobody has then.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// struct Door { is_locked: bool }
///
/// #[actor]
/// impl Door {
///     #[on(started)]
///     fn open(&mut self) -> Result<(), &'static str> {
///         if self.is_locked { Err("it is locked") } else { Ok(()) }
///     }
/// }
///
/// let system = System::start(1)?;
/// let door = system.run_on(0, || async { greenroom::spawn_started(Door { is_locked: true }).await });
/// assert_eq!(door.unwrap_err().to_string(), "Door did not start on shard 0: it is locked");
/// # Ok::<(), greenroom::Error>(())
/// ```
pub async fn spawn_started<A: Actor>(actor: A) -> Result<Addr<A>, SpawnError> {
    let shard = greenroom_runtime::current_shard().unwrap_or_else(|| {
        panic!("`greenroom::spawn_started` was called on a thread that is no shard: use `System::spawn_on`")
    });
    let born = bear(|| actor, |_| Ok(()))
        .await
        .map_err(|kind| SpawnError {
            actor: A::NAME,
            shard,
            kind,
        })?;
    Ok(Addr::from_port(Remote::new(born.grown_up())))
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
