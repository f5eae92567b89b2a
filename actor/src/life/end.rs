//! The end of an actor.

use std::rc::Rc;

use greenroom_runtime::mesh;

use super::bonds::Parent;
use super::control::Control;
use super::exit::{Down, ExitReason};
use super::{Stage, contain};
use crate::actor::Actor;
use crate::fate;
use crate::mailbox::Mailbox;
use crate::observe::DeadLetterReason;
use crate::registry::Registry;

/// The last local of the task to be dropped.
pub(super) struct End<A: Actor> {
    pub(super) mailbox: Rc<Mailbox<A>>,
    pub(super) registry: Rc<Registry>,
}

impl<A: Actor> End<A> {
    /// Why the actor ends.
    fn reason(&self) -> ExitReason {
        if let Some(reason) = self.mailbox.failure() {
            reason
        } else if self.mailbox.stage() != Stage::Done {
            ExitReason::Killed
        } else if self.registry.is_shutting_down() {
            ExitReason::Shutdown
        } else {
            ExitReason::Stopped
        }
    }

    fn tell(&self, down: &Down) {
        let bonds = self.mailbox.bonds();
        let is_known = bonds.is_reported.get();
        if let Some(Parent { addr, place }) = bonds.parent.take() {
            addr.post(Control::ChildEnded {
                place,
                down: down.clone(),
                escalates: bonds.escalates.get(),
                is_known,
            });
        } else if down.reason.is_failure() && !is_known {
            self.registry.root_failed(down);
        }
        let watchers = bonds.watchers.borrow_mut().take();
        for watcher in watchers {
            // Hearing of an end may run foreign code.
            contain(|| watcher.tell(down));
        }
    }
}

impl<A: Actor> Drop for End<A> {
    fn drop(&mut self) {
        let reason = self.reason();
        // From here on nothing that it is told changes anything.
        self.mailbox.set_stage(Stage::Stopping);
        self.mailbox.end_incarnation();
        if self.mailbox.has_bonds() {
            self.mailbox.kill_children();
            let halted = self.mailbox.bonds().halt.borrow_mut().take();
            drop(halted);
        }
        self.mailbox.drop_actor();
        fate::set(None);
        self.mailbox.close(DeadLetterReason::of_end(&reason));
        mesh::evict(self.mailbox.id());
        self.registry.remove(self.mailbox.key());
        self.mailbox.tally().end_actor();
        if self.mailbox.has_bonds() {
            // The factory is the user's.
            let lineage = self.mailbox.bonds().lineage.take();
            contain(|| drop(lineage));
            self.tell(&self.mailbox.down(reason));
        }
    }
}
