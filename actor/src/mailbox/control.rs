//! What reaches an actor about life and death, its own and that of others.

use super::{Mailbox, Phase};
use crate::actor::Actor;
use crate::life::{
    ChildExit, ChildOutcome, Control, Down, Event, ExitReason, Stage, Summons, child_failed,
};

impl<A: Actor> Mailbox<A> {
    /// Takes what a parent, a child, or somebody who watches sent. Never for an actor that is gone, which has left the
    /// tables.
    pub(super) fn control(&self, control: Control) {
        match control {
            Control::Watch(watcher) => {
                self.bonds().watchers.borrow_mut().add(watcher);
            }
            Control::Unwatch(id) => {
                let bonds = self.bonds();
                let watcher = bonds.watchers.borrow_mut().remove(id);
                drop(watcher);
            }
            Control::Link(offer) => {
                // One that is ending has told whom it was linked with: this offer came too late.
                if self.stage.get() <= Stage::Serving
                    && let Some(peer) = offer.accept()
                {
                    self.bonds().concerns.borrow_mut().link(peer);
                }
            }
            Control::Down(down) => self.hear_down(down),
            Control::Linked(down) => self.hear_linked(down),
            Control::ChildEnded {
                place,
                down,
                escalates,
                is_known,
            } => self.child_ended(place, down, escalates, is_known),
            Control::ChildFailed { place, down, go_on } => {
                if self.stage.get() > Stage::Serving {
                    // It ends, and its children before it.
                    return;
                }
                if A::HEARS_CHILD_EXITS {
                    let outcome = ChildOutcome::Restarts;
                    self.push_event(Event::ChildExit(ChildExit { down, outcome }));
                }
                child_failed(self, place, go_on);
            }
            Control::Halt(halted) => {
                // One that has failed waits for its restart already; one that ends does not come again.
                if self.stage.get() <= Stage::Serving && self.is_open() && self.revives() {
                    let previous = self.bonds().halt.borrow_mut().replace(halted);
                    drop(previous);
                    self.summonses.raise(Summons::Halt);
                    self.rouse();
                } else if self.is_open() && !self.revives() {
                    self.stop_now();
                }
            }
            Control::Cut => {
                if self.summonses.has(Summons::Halt) || self.phase.get() != Phase::Open {
                    self.summonses.raise(Summons::Cut);
                    self.rouse();
                }
            }
            Control::StopNow => self.stop_now(),
            // Whoever asked may have gone.
            Control::State(asked) => drop(asked.send(self.life_state())),
        }
    }

    fn hear_down(&self, down: Down) {
        let Some(bonds) = self.try_bonds() else {
            return;
        };
        let is_watched = bonds.concerns.borrow_mut().unwatch(down.id);
        if is_watched && A::HEARS_DOWNS {
            self.push_event(Event::Down(down));
        }
    }

    fn hear_linked(&self, down: Down) {
        let Some(bonds) = self.try_bonds() else {
            return;
        };
        let is_linked = bonds.concerns.borrow_mut().unlink(down.id);
        if is_linked && !down.reason.is_orderly() {
            self.fail_at_once(ExitReason::Linked(down.into_cause()));
        }
    }

    fn child_ended(&self, place: u64, down: Down, escalates: bool, is_known: bool) {
        let bonds = self.bonds();
        bonds.children.remove(place);
        if self.stage.get() > Stage::Serving {
            // It waits for its children to end.
            return self.rouse();
        }
        if A::HEARS_CHILD_EXITS && !is_known {
            let outcome = if escalates {
                ChildOutcome::Escalates
            } else {
                ChildOutcome::Ended
            };
            let down = down.clone();
            self.push_event(Event::ChildExit(ChildExit { down, outcome }));
        }
        if escalates {
            self.fail_at_once(ExitReason::ChildFailed(down.into_cause()));
        }
    }
}
