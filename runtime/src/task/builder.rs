//! Spawning with more said than the future.

use std::borrow::Cow;

use super::join::JoinHandle;
use super::origin::Origin;
use super::ready::Class;
use super::remote::{self, RemoteJoinHandle};
use crate::runtime::Handle;
use crate::shard::ShardId;
use crate::shard::context;

/// What a task is to be, beside its future.
///
/// # Examples
/// ```
/// use greenroom_runtime::task;
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let task = task::Builder::new().name("sweeper").spawn(async { 7 });
///     assert_eq!(task.name(), Some("sweeper"));
///     assert_eq!(task.await.unwrap(), 7);
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until it spawns"]
pub struct Builder {
    name: Option<Cow<'static, str>>,
    class: Class,
}

impl Builder {
    /// A builder of tasks like those of [`spawn`](super::spawn).
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the task, for people who look at it.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Puts the task into a class, which says who goes first on a busy shard.
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Spawns a future on the current shard, as [`spawn`](super::spawn) does.
    ///
    /// # Panics
    /// If the calling thread is no shard, or if the shard already holds 4 194 304 tasks.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let origin = Origin::here().named(self.name).of_class(self.class);
        context::with(|shard| shard.spawn(origin, future)).unwrap_or_else(|| {
            panic!("`task::Builder::spawn` was called on a thread that is no shard")
        })
    }

    /// Spawns a task on a shard of a runtime, as [`Handle::spawn_on`] does.
    #[track_caller]
    pub fn spawn_on<F, Fut>(
        self,
        runtime: &Handle,
        shard: impl Into<ShardId>,
        make: F,
    ) -> RemoteJoinHandle<Fut::Output>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let origin = Origin::here().named(self.name).of_class(self.class);
        remote::spawn_on(runtime, shard.into(), origin, make)
    }
}
