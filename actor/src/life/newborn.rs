//! An actor that nobody knows yet.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_channel::oneshot;
use greenroom_runtime::mesh::ResidentId;
use greenroom_runtime::{JoinError, RemoteJoinHandle};

use super::exit::ExitReason;
use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::error::SpawnErrorKind;
use crate::mailbox::Mailbox;
use crate::registry::Registry;
use crate::system::Handle;

/// An actor on its way to whoever asked for it. If that one has given up, nobody will ever know it, and it stops.
pub(crate) struct Newborn<A: Actor> {
    id: Option<ResidentId<Mailbox<A>>>,
}

impl<A: Actor> Newborn<A> {
    pub(crate) fn new(id: ResidentId<Mailbox<A>>) -> Self {
        Self { id: Some(id) }
    }

    /// Waits for the outcome of its start hook.
    pub(crate) async fn started(
        self,
        outcome: oneshot::Receiver<Result<(), SpawnErrorKind>>,
    ) -> Result<Self, SpawnErrorKind> {
        match outcome.await {
            Ok(outcome) => outcome.map(|()| self),
            // Its task was dropped before its hook was done: by the end of the system, or by somebody who knew it already.
            Err(oneshot::Canceled) if is_shutting_down() => Err(SpawnErrorKind::NoShard {
                shards: Handle::current().map_or(0, |system| system.shard_count()),
            }),
            Err(oneshot::Canceled) => Err(SpawnErrorKind::Cut(ExitReason::Killed)),
        }
    }

    /// Somebody knows it.
    pub(crate) fn grown_up(mut self) -> ResidentId<Mailbox<A>> {
        self.id.take().expect("taken once")
    }
}

fn is_shutting_down() -> bool {
    Registry::with(Registry::is_shutting_down) == Some(true)
}

impl<A: Actor> Drop for Newborn<A> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            Addr::stop(Addr::<A>::from_port(Remote::new(id)));
        }
    }
}

/// A start on some shard, which a task there sees to. Dropped before that is done, it is given up, however long the start hook waits.
pub(crate) struct Starting<T> {
    task: RemoteJoinHandle<T>,
    is_done: bool,
}

impl<T> Starting<T> {
    pub(crate) fn new(task: RemoteJoinHandle<T>) -> Self {
        Self {
            task,
            is_done: false,
        }
    }
}

impl<T> Future for Starting<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(Pin::new(&mut self.task).poll(cx));
        self.is_done = true;
        Poll::Ready(outcome)
    }
}

impl<T> Drop for Starting<T> {
    fn drop(&mut self) {
        if !self.is_done {
            self.task.abort();
        }
    }
}
