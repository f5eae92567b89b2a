//! The place that a waiting send holds.

use greenroom_runtime::mesh::{self, Admission, Lane, ResidentId, Route, Ticket};

use crate::actor::Actor;
use crate::mailbox::Mailbox;

/// The place a waiting send holds: in one queue at a time.
#[derive(Debug, Default)]
pub enum Place {
    /// It has not had to wait yet.
    #[default]
    None,
    /// In the line of the mailbox, on the actor's shard.
    Mailbox(Lane, Ticket),
    /// In the lines of the link, on the sender's shard.
    Link(Admission),
    /// In the line of an instance of a key, by the number of its mailbox.
    OfInstance(u64, Lane, Ticket),
}

impl Place {
    /// Gives the place up, from any thread.
    pub(crate) fn leave<A: Actor>(&mut self, id: ResidentId<Mailbox<A>>) {
        match std::mem::take(self) {
            // Places of instances are given up by the way to their key.
            Self::None | Self::OfInstance(..) => {}
            Self::Link(mut admission) => mesh::leave(&mut admission),
            Self::Mailbox(lane, ticket) => {
                let left = id.visit(|mailbox| mailbox.leave(lane, ticket));
                if left.is_none() && id.route() != Route::Here {
                    // Polled and then dropped away from the shard it waited on. If that shard is gone, so is the queue.
                    drop(id.run_there(Box::new(move || {
                        id.visit(|mailbox| mailbox.leave(lane, ticket));
                    })));
                }
            }
        }
    }

    /// The place in the mailbox's line; a place elsewhere is given up.
    pub(crate) fn in_mailbox<A: Actor>(&mut self, id: ResidentId<Mailbox<A>>) -> Option<Ticket> {
        if let Self::Mailbox(_, ticket) = *self {
            return Some(ticket);
        }
        self.leave(id);
        None
    }

    /// The places at the link; a place elsewhere is given up.
    pub(crate) fn in_link<A: Actor>(&mut self, id: ResidentId<Mailbox<A>>) -> Admission {
        if let Self::Link(admission) = *self {
            return admission;
        }
        self.leave(id);
        Admission::default()
    }
}
