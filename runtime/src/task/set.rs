//! Tasks that belong together: waited for in the order they end, and aborted together.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use futures_util::stream::FuturesUnordered;

use super::abort::AbortHandle;
use super::coop;
use super::id::Id;
use super::join::{JoinError, JoinHandle};
use super::remote::RemoteJoinHandle;
use crate::runtime::Handle;
use crate::shard::ShardId;

/// Tasks that are owned together. Dropping the set aborts them.
///
/// They may run on this shard or on others. Each takes an allocation of the set's beside its own.
///
/// # Shard affinity
/// `!Send`, as the handles in it are.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Handle, task::JoinSet};
/// # let runtime = greenroom_runtime::Builder::new().shards(2).start()?;
/// runtime.run_on(0, || async {
///     let mut squares = JoinSet::new();
///     for number in 0..4 {
///         squares.spawn(async move { number * number });
///     }
///     squares.spawn_on(&Handle::current().unwrap(), 1, || async { 16 });
///     let mut sum = 0;
///     while let Some(square) = squares.join_next().await {
///         sum += square.unwrap();
///     }
///     assert_eq!(sum, 30);
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Debug)]
pub struct JoinSet<T: 'static> {
    members: FuturesUnordered<Member<T>>,
}

#[derive(Debug)]
enum Member<T> {
    Here(JoinHandle<T>),
    Elsewhere(RemoteJoinHandle<T>),
}

/// Which task has ended, if it ever started, and how.
type Joined<T> = (Option<Id>, Result<T, JoinError>);

impl<T: 'static> JoinSet<T> {
    /// A set without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self {
            members: FuturesUnordered::new(),
        }
    }

    /// Spawns a task on the current shard.
    ///
    /// # Panics
    /// If the calling thread is no shard, or if the shard already holds 4 194 304 tasks.
    #[track_caller]
    pub fn spawn(
        &mut self,
        future: impl IntoFuture<Output = T, IntoFuture: 'static>,
    ) -> AbortHandle {
        self.insert(super::spawn(future))
    }

    /// Spawns a task on a shard of a runtime, as [`Handle::spawn_on`] does.
    #[track_caller]
    pub fn spawn_on<F, Fut>(
        &mut self,
        runtime: &Handle,
        shard: impl Into<ShardId>,
        make: F,
    ) -> AbortHandle
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
        T: Send,
    {
        self.insert_remote(runtime.spawn_on(shard, make))
    }

    /// Adds a task of this shard, which is aborted with the set from now on.
    pub fn insert(&mut self, task: JoinHandle<T>) -> AbortHandle {
        let abort = task.abort_handle();
        self.members.push(Member::Here(task));
        abort
    }

    /// Adds a task of any shard, which is aborted with the set from now on.
    pub fn insert_remote(&mut self, task: RemoteJoinHandle<T>) -> AbortHandle {
        let abort = task.abort_handle();
        self.members.push(Member::Elsewhere(task));
        abort
    }

    /// Waits for one of the tasks to end and takes it out; `None` when there is none.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        let (_id, outcome) = self.join_next_with_id().await?;
        Some(outcome)
    }

    /// As [`JoinSet::join_next`], and says which task it was; a task on another shard that never started has no id.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn join_next_with_id(&mut self) -> Option<(Option<Id>, Result<T, JoinError>)> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// Takes out a task that has ended, if there is one.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        let _lifted = coop::Lifted::new();
        match self.poll_join_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some((_id, outcome))) => Some(outcome),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }

    fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Joined<T>>> {
        Pin::new(&mut self.members).poll_next(cx)
    }

    /// Aborts all tasks. They stay in the set until they are joined.
    pub fn abort_all(&self) {
        for member in &self.members {
            match member {
                Member::Here(task) => task.abort(),
                Member::Elsewhere(task) => task.abort(),
            }
        }
    }

    /// Aborts all tasks and waits until they have ended.
    ///
    /// # Cancel safety
    /// Dropping the future leaves tasks in the set that were aborted.
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }

    /// Empties the set; the tasks run on by themselves.
    pub fn detach_all(&mut self) {
        drop(mem::take(&mut self.members));
    }

    /// How many tasks were not joined yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether all tasks were joined.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl<T: 'static> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: 'static> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.abort_all();
    }
}

impl<T: 'static> Future for Member<T> {
    type Output = Joined<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Here(task) => {
                let outcome = Pin::new(&mut *task).poll(cx);
                outcome.map(|outcome| (Some(task.id()), outcome))
            }
            Self::Elsewhere(task) => {
                let outcome = Pin::new(&mut *task).poll(cx);
                outcome.map(|outcome| (task.id(), outcome))
            }
        }
    }
}
