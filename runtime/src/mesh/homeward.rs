//! Messages that nobody took, on their way back to the shard that sent them.

use super::record::Record;
use super::resident::{Origin, Resident};
use crate::shard::{Shard, ShardId, context};

impl Origin {
    /// Sends a message back that was not wanted, to [`Resident::returned`] on the shard it came from. It does not wait for
    /// room.
    ///
    /// # Errors
    /// Gives the message back when it came from no peer, or when 4096 records wait already on the way there.
    pub fn send_back<R: Resident>(self, message: R::Message) -> Result<(), R::Message> {
        let Self::Peer(peer) = self else {
            return Err(message);
        };
        let mut message = Some(message);
        context::with(|shard| {
            if shard.link(peer).borrow().may_send_back() {
                let message = message.take().expect("taken once");
                shard.post_record(peer, Return::<R> { message });
            }
        });
        message.map_or(Ok(()), Err)
    }
}

/// A message on its way back to the shard that sent it.
struct Return<R: Resident> {
    message: R::Message,
}

impl<R: Resident> Record for Return<R> {
    fn arrive(self, _: &Shard, _: ShardId) {
        R::returned(self.message);
    }
}
