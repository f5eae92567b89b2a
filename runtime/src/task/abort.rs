//! Cancelling a task from anywhere.

use std::sync::Arc;

use super::id::Id;
use super::remote::Birth;
use crate::shard::{context, registry};

/// A handle that can only abort its task. It may be used on any thread, and keeps nothing alive.
///
/// # Examples
/// ```
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// use greenroom_runtime::spawn;
/// runtime.run_on(0, || async {
///     let forever = spawn(std::future::pending::<()>());
///     let abort = forever.abort_handle();
///     std::thread::spawn(move || abort.abort());
///     assert!(forever.await.unwrap_err().is_cancelled());
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AbortHandle {
    target: Target,
}

#[derive(Clone, Debug)]
enum Target {
    Task(Id),
    /// Spawned from afar: its id may not be known yet.
    Remote(Arc<Birth>),
}

impl AbortHandle {
    pub(super) fn of_task(id: Id) -> Self {
        Self {
            target: Target::Task(id),
        }
    }

    pub(super) fn of_remote(birth: Arc<Birth>) -> Self {
        Self {
            target: Target::Remote(birth),
        }
    }

    /// Cancels the task at its current await point: its future is dropped, and who joins it is told that it was
    /// cancelled. A task that has ended, or whose shard has, is left alone.
    ///
    /// # Shard affinity
    /// On the task's shard the future is dropped within this call, or when its poll returns if it is the one that runs. A destructor
    /// that aborts another task is dropped in an abort itself: deep inside of many of them the future is dropped when the
    /// outermost is done.
    /// From any other thread a message is sent, and the future is dropped when the shard takes it.
    pub fn abort(&self) {
        match &self.target {
            Target::Task(id) => abort(*id),
            Target::Remote(birth) => birth.abort(),
        }
    }

    /// The task's id; `None` while a message that spawns it is on its way.
    #[must_use]
    pub fn id(&self) -> Option<Id> {
        match &self.target {
            Target::Task(id) => Some(*id),
            Target::Remote(birth) => birth.id(),
        }
    }
}

/// Aborts a task, wherever it lives.
pub(super) fn abort(id: Id) {
    let here = context::with(|shard| {
        let own = shard.number() == id.task().shard();
        if own {
            shard.abort_task(id);
        }
        own
    });
    if here != Some(true)
        && let Some(shared) = registry::shared(id.task().shard())
    {
        let job = Box::new(move || {
            context::with(|shard| shard.abort_task(id));
        });
        // A shard that is gone has dropped its tasks.
        drop(shared.submit(job));
    }
}
