//! What actors tell each other about life and death. It takes no room in mailboxes, and nothing can refuse it.

use std::fmt;

use futures_channel::oneshot;
use greenroom_runtime::mesh::ResidentId;

use super::exit::{ActorId, Down};
use super::watch::{LinkOffer, Watcher};
use crate::actor::Actor;
use crate::mailbox::{Mailbox, Parcel};

/// Whether and when a restart may go on: the sender is told when the start hook has run.
pub(crate) type GoOn = oneshot::Sender<oneshot::Sender<()>>;

/// A message of the framework to an actor of any type.
#[expect(unnameable_types, reason = "in a hidden type")]
#[derive(Debug)]
pub enum Control {
    /// Somebody wants to hear of the end.
    Watch(Watcher),
    /// An actor does not want to hear of the end any more, or has ended itself.
    Unwatch(ActorId),
    /// An actor wants to end with this one.
    Link(LinkOffer),
    /// A watched actor has ended.
    Down(Down),
    /// A linked actor has ended, or does not want to be linked any more.
    Linked(Down),
    /// A child is gone for good.
    ChildEnded {
        place: u64,
        down: Down,
        /// It failed too often.
        escalates: bool,
        /// Whoever spawned it was told already.
        is_known: bool,
    },
    /// A child has failed and wants to be restarted.
    ChildFailed { place: u64, down: Down, go_on: GoOn },
    /// The supervisor wants to restart this actor together with others.
    Halt(oneshot::Sender<GoOn>),
    /// The handler that waits is to be given up, so that the actor can halt.
    Cut,
    /// Stops after the message that is being handled.
    StopNow,
    /// Somebody asks how far its life has come.
    State(oneshot::Sender<super::LifeState>),
}

/// An actor of any type, reached with what concerns its life only.
pub(crate) trait AnyAddr: Send + Sync {
    fn id(&self) -> ActorId;
    /// Never waits. The actor may be gone: then the message is dropped, and says so if it must.
    fn post(&self, control: Control);
    fn stop(&self);
    fn kill(&self);
    /// Its children, if it lives on this shard: it forgets them. In the order of their start.
    fn take_children(&self) -> Vec<Box<dyn AnyAddr>>;
    fn clone_box(&self) -> Box<dyn AnyAddr>;
}

impl fmt::Debug for dyn AnyAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actor {}", self.id())
    }
}

struct Erased<A: Actor>(ResidentId<Mailbox<A>>);

/// Forgets the type of an actor.
pub(crate) fn erase<A: Actor>(id: ResidentId<Mailbox<A>>) -> Box<dyn AnyAddr> {
    Box::new(Erased(id))
}

impl<A: Actor> AnyAddr for Erased<A> {
    fn id(&self) -> ActorId {
        ActorId::new(self.0.number())
    }

    fn post(&self, control: Control) {
        drop(self.0.post(Parcel::Control(Box::new(control))));
    }

    fn stop(&self) {
        drop(self.0.post(Parcel::Stop));
    }

    fn kill(&self) {
        drop(self.0.post(Parcel::Kill));
    }

    fn take_children(&self) -> Vec<Box<dyn AnyAddr>> {
        self.0.visit(Mailbox::take_children).unwrap_or_default()
    }

    fn clone_box(&self) -> Box<dyn AnyAddr> {
        Box::new(Self(self.0))
    }
}
