//! What can be chosen before a system starts.

use std::time::Duration;

use greenroom_runtime::StartError;

use super::{Handle, System};
use crate::abort;
use crate::fate;
use crate::life::OnRootFailure;
use crate::observe::{DeadLetter, DeadLetterHook};
use crate::registry::{Registry, Settings};

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
    pub(super) fn new() -> Self {
        Self {
            runtime: greenroom_runtime::Builder::new().reply_limit(Some(ASK_DEADLINE)),
            settings: None,
        }
    }

    /// How many shards, 1 to 1024; one per CPU this process may use if never called.
    pub fn shards(self, count: usize) -> Self {
        self.runtime(|runtime| runtime.shards(count))
    }

    /// Whether each shard is pinned to a CPU. Default: yes.
    pub fn pin(self, pin: bool) -> Self {
        self.runtime(|runtime| runtime.pin(pin))
    }

    /// How long an idle shard watches for news of any kind before it sleeps; zero to sleep at once. If this is not called it
    /// watches for messages of other shards only, for up to 50 microseconds, while one that it talks with is at work.
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
    /// assert!(system.block_on(brief.greet()).is_err());
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
        let handle = Handle::of(&runtime);
        if let Some(settings) = &self.settings {
            for shard in handle.shards() {
                let settings = settings.clone();
                // In front of everything that is sent there by whoever gets the system.
                let configured = handle.runtime().spawn_on(shard, move || async move {
                    Registry::with(|registry| registry.configure(settings));
                });
                drop(configured);
            }
        }
        Ok(System {
            runtime,
            handle,
            alarm: self.settings.unwrap_or_default().alarm,
        })
    }
}
