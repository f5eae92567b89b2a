//! Mailboxes of actors that are called by key: messages come through a keeper, and what is held back is a part of its flow.

use futures_channel::oneshot;
use greenroom_runtime::mesh::{Flow, Lane, Origin};

use super::{Activity, Mailbox, Phase};
use crate::actor::Actor;

impl<A: Actor> Mailbox<A> {
    /// Whether it takes messages.
    pub(crate) fn is_open(&self) -> bool {
        self.phase.get() == Phase::Open
    }

    /// Whether its actor waits for a message; then none is queued.
    pub(crate) fn is_idle(&self) -> bool {
        self.activity.get() == Activity::Idle
    }

    /// Resolves, as cancelled, when the state was dropped; `None` if it was already.
    pub(crate) fn until_gone(&self) -> Option<oneshot::Receiver<()>> {
        let (ended, gone) = oneshot::channel::<()>();
        self.own(Box::new(ended)).ok().map(|_| gone)
    }

    /// Messages of other shards are a part of this flow, and not addressed to the mailbox itself.
    pub(crate) fn set_flow(&self, flow: Flow) {
        self.rare().flow.set(Some(flow));
    }

    pub(super) fn flow(&self) -> Option<Flow> {
        self.rare.get()?.flow.get()
    }

    pub(super) fn unchoke(&self, lane: Lane, origin: Origin) {
        match self.flow() {
            None => origin.unchoke(self.id(), lane),
            Some(flow) => origin.unchoke_flow(flow, lane),
        }
    }

    /// Lets those go on who were held back for this mailbox: their messages go to another one now.
    pub(crate) fn let_flow_go(&self) {
        if let Some(rare) = self.rare.get() {
            for lane in [Lane::Urgent, Lane::Normal] {
                for origin in rare.lines[lane.index()].choked.take() {
                    self.unchoke(lane, origin);
                }
            }
        }
    }
}
