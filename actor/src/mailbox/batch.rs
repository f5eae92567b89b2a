//! What a handler takes out of the mailbox besides the message it began with.

use greenroom_runtime::mesh::AskId;

use super::Mailbox;
use crate::actor::Actor;

impl<A: Actor> Mailbox<A> {
    /// The running handler has so many messages besides its own.
    pub(crate) fn note_beside(&self, messages: usize) {
        self.beside.set(u32::try_from(messages).unwrap_or(u32::MAX));
    }

    /// The running handler owes the answer to this ask too, and answers when it ends.
    pub(crate) fn note_owed(&self, ask: AskId) {
        self.rare().owed.borrow_mut().push(ask);
    }

    /// Whether the running handler is there for several messages.
    #[inline]
    pub(crate) fn has_beside(&self) -> bool {
        self.beside.get() != 0
    }

    pub(super) fn is_owed(&self, ask: AskId) -> bool {
        let owed = self.rare.get().map(|rare| rare.owed.borrow());
        owed.is_some_and(|owed| owed.contains(&ask))
    }

    #[cold]
    pub(super) fn forget_owed(&self) {
        if let Some(rare) = self.rare.get() {
            rare.owed.borrow_mut().clear();
        }
    }
}
