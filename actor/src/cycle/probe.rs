//! What travels along who waits for whom.

use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::{AskId, Lane};

use crate::error::CallSite;

/// What a wait is for, as the actor that is waited for can check it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The answer to this ask.
    Answer(AskId),
    /// Room in a lane of the mailbox, for somebody on this shard.
    Room(ShardId, Lane),
}

/// Passes a probe on to the actor that is waited for.
pub(crate) type Forward = Box<dyn Fn(Box<Probe>)>;

/// What one call of a handler waits for.
pub(crate) struct Wait {
    /// Names the wait, and orders it among all others.
    pub(crate) id: AskId,
    pub(crate) edge: Edge,
    pub(crate) site: CallSite,
    /// How many clones of its task's waker the wait keeps.
    pub(crate) wakers: usize,
    /// How a question gets there; `None` if it cannot.
    pub(crate) forward: Option<Forward>,
}

impl Wait {
    /// Sends a probe to the actor that is waited for.
    pub(crate) fn send(&self, probe: Box<Probe>) {
        if let Some(forward) = &self.forward {
            forward(probe);
        }
    }
}

/// Asks the actor that is waited for whom it waits for itself.
#[derive(Debug)]
#[expect(
    unnameable_types,
    reason = "in what travels to a mailbox, which generated code names"
)]
pub struct Probe {
    /// The number of the actor that began it.
    pub(crate) initiator: (u16, u64),
    /// The wait of that actor.
    pub(crate) wait: AskId,
    /// What the last one on the path waits for.
    pub(crate) edge: Edge,
    /// The calls from actor to actor, up to the one that the probe is sent to.
    pub(crate) path: Vec<CallSite>,
}

/// What an actor has to do with a probe.
pub(crate) enum Verdict {
    /// The probe leads nowhere: what it asks about is not held by a wait of this actor, or another probe sees to it.
    Ends,
    GoesOn,
    /// It is at home.
    Cycle,
}

impl Probe {
    /// Begins at the actor of this number, which waits for nothing but this.
    pub(crate) fn begin(actor: (u16, u64), wait: &Wait) -> Box<Self> {
        Box::new(Self {
            initiator: actor,
            wait: wait.id,
            edge: wait.edge,
            path: vec![wait.site],
        })
    }

    /// What becomes of it at the actor of this number, which waits for nothing but `wait`, and holds up what the probe asks
    /// about.
    pub(crate) fn judge(&self, actor: (u16, u64), wait: &Wait) -> Verdict {
        if actor == self.initiator {
            return if wait.id == self.wait {
                Verdict::Cycle
            } else {
                Verdict::Ends
            };
        }
        // Of a cycle's waits the greatest is given up, and by its own probe.
        let is_greatest = wait.id < self.wait;
        // The last one on the path is the call of this actor.
        let (_, before) = self.path.split_last().unwrap_or((&wait.site, &[]));
        let was_here = before.iter().any(|site| site.number == actor);
        if is_greatest && !was_here {
            Verdict::GoesOn
        } else {
            Verdict::Ends
        }
    }

    /// One step further, along this wait.
    pub(crate) fn go_on(mut self: Box<Self>, wait: &Wait) {
        self.path.push(wait.site);
        self.edge = wait.edge;
        wait.send(self);
    }
}
