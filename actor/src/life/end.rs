//! The end of an actor.

use std::rc::Rc;

use greenroom_runtime::mesh;

use crate::actor::Actor;
use crate::fate;
use crate::mailbox::Mailbox;
use crate::registry::Registry;

/// The last local of the task to be dropped.
pub(super) struct End<A: Actor> {
    pub(super) mailbox: Rc<Mailbox<A>>,
    pub(super) registry: Rc<Registry>,
    pub(super) key: usize,
}

impl<A: Actor> Drop for End<A> {
    fn drop(&mut self) {
        let lost = self.mailbox.end_errands();
        self.mailbox.drop_actor();
        fate::set(None);
        let undelivered = lost + self.mailbox.close();
        self.registry.count_dead_letters(undelivered);
        mesh::evict(self.mailbox.id());
        self.registry.remove(self.key);
    }
}
