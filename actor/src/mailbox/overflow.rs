//! What becomes of a message for which there is no room.
//!
//! | policy | sent from the actor's shard | arrived from another shard | choke |
//! |---|---|---|---|
//! | wait | waits in line; `try_tell` is refused | goes in beyond the bound | holds senders back |
//! | reject | refused | is dropped | refuses senders |
//! | drop oldest | goes in; the oldest of the lane is dropped | likewise | |
//! | drop newest | is accepted and dropped | is dropped | |
//!
//! A refused message was never sent: its arguments are its sender's. A dropped one was, so it is a dead letter, and if it
//! was asked its asker hears that the mailbox was full. Messages are dropped with nothing borrowed: their destructors may
//! send, also to this mailbox. Such a send is refused if it finds no room either, or it could go on for ever.

use greenroom_runtime::mesh::{Lane, Origin};

use super::{Letter, Mailbox};
use crate::actor::{Actor, Overflow};
use crate::address::Refused;
use crate::fate::{self, Fate};
use crate::observe::dispose;

impl<A: Actor> Mailbox<A> {
    /// Sends from the actor's shard to a lane without room.
    #[cold]
    pub(super) fn push_beyond(
        &self,
        lane: Lane,
        build: impl FnOnce() -> A::LocalMsg,
    ) -> Result<(), Refused> {
        let drops = matches!(A::OVERFLOW, Overflow::DropOldest | Overflow::DropNewest);
        if !drops || fate::current() == Some(Fate::Overflowed) {
            return Err(Refused::Full);
        }
        self.replace(lane, build());
        Ok(())
    }

    /// Takes what came from another shard to a lane without room.
    #[cold]
    pub(super) fn arrive_beyond(&self, lane: Lane, message: A::LocalMsg, origin: Origin) {
        if A::OVERFLOW == Overflow::Reject {
            self.choke(lane, origin);
        }
        self.replace(lane, message);
    }

    /// Drops one of the messages in a full lane and of one more.
    fn replace(&self, lane: Lane, message: A::LocalMsg) {
        let dropped = if A::OVERFLOW == Overflow::DropOldest {
            let mut queue = self.lane(lane).borrow_mut();
            queue.push_back(Letter::Message(message));
            // What the actor has begun itself is not in anybody's way.
            let oldest = queue
                .iter()
                .position(|letter| matches!(letter, Letter::Message(_)));
            oldest.and_then(|oldest| queue.remove(oldest))
        } else {
            Some(Letter::Message(message))
        };
        if let Some(Letter::Message(message)) = dropped {
            dispose::<A>(message, Fate::Overflowed);
        }
    }
}
