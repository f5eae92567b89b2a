//! An actor that nobody knows yet.

use futures_channel::oneshot;
use greenroom_runtime::mesh::ResidentId;

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

    pub(crate) fn id(&self) -> ResidentId<Mailbox<A>> {
        self.id.expect("it is there until it has grown up")
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
