//! What users have called while shards run: functions of their own, at certain moments.
//!
//! They are called on the shard, never while one of its structures is borrowed, so they may do what a task may do. A panic
//! in one is contained and counted. A runtime without hooks pays a branch at each of the moments.

use std::fmt;
use std::sync::Arc;

use crate::builder::Builder;
use crate::shard::{Shard, ShardId};
use crate::task::Info;

/// Called with a shard.
pub(crate) type ShardHook = Arc<dyn Fn(ShardId) + Send + Sync>;
/// Called with a task.
pub(crate) type TaskHook = Arc<dyn Fn(&Info<'_>) + Send + Sync>;

/// The hooks of a runtime, apart from the one at the start of a shard.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    stop: Option<ShardHook>,
    park: Option<ShardHook>,
    unpark: Option<ShardHook>,
    spawn: Option<TaskHook>,
    before_poll: Option<TaskHook>,
    after_poll: Option<TaskHook>,
    terminate: Option<TaskHook>,
}

/// A moment in the life of a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ShardMoment {
    Stop,
    Park,
    Unpark,
}

/// A moment in the life of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TaskMoment {
    Spawn,
    BeforePoll,
    AfterPoll,
    Terminate,
}

impl Hooks {
    /// `None` if there are none, so that shards have one thing to look at.
    pub(crate) fn into_option(self) -> Option<Box<Self>> {
        let task = [
            &self.spawn,
            &self.before_poll,
            &self.after_poll,
            &self.terminate,
        ];
        let shard = [&self.stop, &self.park, &self.unpark];
        let any = task.iter().any(|hook| hook.is_some()) || shard.iter().any(|hook| hook.is_some());
        any.then(|| Box::new(self))
    }

    fn of_shard(&self, moment: ShardMoment) -> Option<&ShardHook> {
        match moment {
            ShardMoment::Stop => self.stop.as_ref(),
            ShardMoment::Park => self.park.as_ref(),
            ShardMoment::Unpark => self.unpark.as_ref(),
        }
    }

    fn of_task(&self, moment: TaskMoment) -> Option<&TaskHook> {
        match moment {
            TaskMoment::Spawn => self.spawn.as_ref(),
            TaskMoment::BeforePoll => self.before_poll.as_ref(),
            TaskMoment::AfterPoll => self.after_poll.as_ref(),
            TaskMoment::Terminate => self.terminate.as_ref(),
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

impl Shard {
    #[inline]
    pub(crate) fn hook_shard(&self, moment: ShardMoment) {
        if let Some(hooks) = self.hooks() {
            self.call_shard_hook(hooks, moment);
        }
    }

    #[cold]
    fn call_shard_hook(&self, hooks: &Hooks, moment: ShardMoment) {
        if let Some(hook) = hooks.of_shard(moment) {
            self.contain(|| hook(self.id()));
        }
    }

    /// Calls the hook of a moment, if there is one, with the task that `info` tells of.
    #[inline]
    pub(crate) fn hook_task<'a>(&self, moment: TaskMoment, info: impl FnOnce(ShardId) -> Info<'a>) {
        if let Some(hooks) = self.hooks() {
            self.call_task_hook(hooks, moment, &info(self.id()));
        }
    }

    #[cold]
    fn call_task_hook(&self, hooks: &Hooks, moment: TaskMoment, info: &Info<'_>) {
        if let Some(hook) = hooks.of_task(moment) {
            self.contain(|| hook(info));
        }
    }
}

/// # Hooks
///
/// Functions of the user's, called on the shards' threads. They should be short, as all of the shard waits for them. A panic
/// in one is contained, and counted in [`ShardCounts::stray_panics`](crate::ShardCounts::stray_panics).
impl Builder {
    /// Calls `hook` on the thread of each shard that ran, when its teardown is over.
    pub fn on_shard_stop(mut self, hook: impl Fn(ShardId) + Send + Sync + 'static) -> Self {
        self.hooks.stop = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` before a shard rests, as it has nothing to do. What the hook makes ready keeps the shard from sleeping.
    pub fn on_shard_park(mut self, hook: impl Fn(ShardId) + Send + Sync + 'static) -> Self {
        self.hooks.park = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` when a shard that rested goes on, whether it slept or found that it need not.
    pub fn on_shard_unpark(mut self, hook: impl Fn(ShardId) + Send + Sync + 'static) -> Self {
        self.hooks.unpark = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each task, after it was spawned and before it first runs.
    ///
    /// A task that a closing shard refuses is not reported. A hook that spawns is called for what it spawns.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use greenroom_runtime::{Builder, spawn};
    ///
    /// let spawned = Arc::new(AtomicUsize::new(0));
    /// let count = spawned.clone();
    /// let runtime = Builder::new()
    ///     .shards(1)
    ///     .on_task_spawn(move |_task| {
    ///         count.fetch_add(1, Ordering::Relaxed);
    ///     })
    ///     .start()?;
    /// runtime.run_on(0, || async { spawn(async {}).await.unwrap() });
    /// assert!(spawned.load(Ordering::Relaxed) >= 1);
    /// # Ok::<(), greenroom_runtime::StartError>(())
    /// ```
    pub fn on_task_spawn(mut self, hook: impl Fn(&Info<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.spawn = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` before each poll of a task.
    pub fn on_before_task_poll(mut self, hook: impl Fn(&Info<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.before_poll = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` after each poll of a task, one that panicked included.
    pub fn on_after_task_poll(mut self, hook: impl Fn(&Info<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.after_poll = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` when a task has ended, in whatever way: finished, panicked, aborted, or at the end of its shard.
    pub fn on_task_terminate(mut self, hook: impl Fn(&Info<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.terminate = Some(Arc::new(hook));
        self
    }
}
