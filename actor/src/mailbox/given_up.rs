//! Asks whose askers have given up: their messages are skipped when their turn comes.
//!
//! Nothing is looked for in the queue when an asker gives up. The mailbox notes that somebody did; while that note
//! stands, the reply of each message is looked at before its handler begins. A slot of this shard, and the channel to a
//! thread outside, say themselves whether anybody waits; of the slots of other shards the mailbox keeps a list. Nothing
//! is noted about an empty queue, and the notes end when it is empty; so the list is bounded by the queue.

use greenroom_runtime::mesh::{AskId, ResidentId, Route};

use super::{Letter, Mailbox, Notices, Parcel, Phase};
use crate::actor::Actor;
use crate::registry::Registry;
use crate::reply::Carries;

/// Of so many more asks than there are letters the mailbox looks which ones are still in the queue.
const SURPLUS: usize = 64;

impl<A: Actor> Mailbox<A> {
    /// Lets the actor know, from any thread, that nobody waits for an answer any more. `None`: of a thread that is no
    /// shard.
    pub(crate) fn give_up(id: ResidentId<Self>, ask: Option<AskId>) {
        match id.route() {
            Route::Here => {
                id.visit(|mailbox| mailbox.note_given_up(None));
            }
            // An actor whose shard is gone handles nothing.
            Route::Peer(_) | Route::Outside => drop(id.post(Parcel::GivenUp(ask))),
        }
    }

    /// Somebody gave an ask up; which one is said if its slot is on another shard.
    pub(crate) fn note_given_up(&self, ask: Option<AskId>) {
        let letters = self.len();
        if letters == 0 || self.phase.get() == Phase::Closed {
            return;
        }
        self.note(Notices::GIVEN_UP);
        let Some(ask) = ask else { return };
        let mut given_up = self.rare().given_up.borrow_mut();
        given_up.insert(ask);
        if given_up.len() > letters + SURPLUS {
            let (urgent, normal) = (self.rare().urgent.borrow(), self.queue.borrow());
            let asks = urgent
                .iter()
                .chain(normal.iter())
                .filter_map(Letter::ask)
                .collect();
            *given_up = &*given_up & &asks;
        }
    }

    /// Whether replies are looked at before handlers begin.
    #[inline]
    pub(crate) fn looks_first(&self) -> bool {
        self.notices.get().has(Notices::GIVEN_UP)
    }

    /// Counts a message whose asker has given up, and drops it; gives back any other one.
    #[cold]
    pub(crate) fn skip_given_up(&self, message: A::LocalMsg) -> Option<A::LocalMsg> {
        let reply = message.carried().reply();
        let ask = reply.note().and_then(|note| note.ask());
        let is_listed = ask.is_some_and(|ask| self.rare().given_up.borrow_mut().remove(&ask));
        if !is_listed && (reply.note().is_none() || reply.is_wanted()) {
            return Some(message);
        }
        Registry::with(Registry::count_skipped);
        crate::life::contain(|| drop(message));
        None
    }

    /// The queue is empty: nothing of what was given up is in it.
    #[cold]
    pub(super) fn forget_given_up(&self) {
        self.unnote(Notices::GIVEN_UP);
        if let Some(rare) = self.rare.get() {
            rare.given_up.borrow_mut().clear();
        }
    }
}
