//! A parent's side of its children: who they are, in which order they started, and how failures spread among them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::JoinHandle;
use greenroom_runtime::mesh::ResidentId;
use greenroom_runtime::time;

use super::control::{AnyAddr, Control, GoOn};
use super::exit::ActorId;
use crate::actor::Actor;
use crate::mailbox::Mailbox;

/// Which children are restarted when one of them fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The one that failed.
    #[default]
    OneForOne,
    /// All of them, as each depends on each.
    OneForAll,
    /// The one that failed and those that were started after it, as they depend on it.
    RestForOne,
}

/// The children of one actor, by their places: later ones have greater places.
#[derive(Default)]
pub(crate) struct Children {
    strategy: Cell<Strategy>,
    next: Cell<u64>,
    by_place: RefCell<BTreeMap<u64, Option<Box<dyn AnyAddr>>>>,
    /// Those that failed and wait to be restarted with others.
    failed: RefCell<BTreeMap<u64, GoOn>>,
    /// The task that restarts several.
    rounds: Cell<Option<JoinHandle<()>>>,
}

impl Children {
    pub(crate) fn set_strategy(&self, strategy: Strategy) {
        self.strategy.set(strategy);
    }

    /// Keeps a place for a child that is not born yet.
    pub(crate) fn reserve(&self) -> u64 {
        let place = self.next.get();
        self.next.set(place + 1);
        self.by_place.borrow_mut().insert(place, None);
        place
    }

    /// The child at a place is born. It may have ended since.
    pub(crate) fn born(&self, place: u64, child: Box<dyn AnyAddr>) {
        if let Some(empty) = self.by_place.borrow_mut().get_mut(&place) {
            *empty = Some(child);
        }
    }

    /// The child at a place was never born.
    pub(crate) fn give_up(&self, place: u64) {
        let mut by_place = self.by_place.borrow_mut();
        if let Some(None) = by_place.get(&place) {
            by_place.remove(&place);
        }
    }

    pub(crate) fn remove(&self, place: u64) {
        let removed = self.by_place.borrow_mut().remove(&place);
        drop(removed);
        // Nobody is to restart it any more.
        let failed = self.failed.borrow_mut().remove(&place);
        drop(failed);
    }

    pub(crate) fn contains(&self, place: u64) -> bool {
        self.by_place.borrow().contains_key(&place)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_place.borrow().len()
    }

    /// The child that was started last.
    pub(crate) fn last(&self) -> Option<(u64, Option<Box<dyn AnyAddr>>)> {
        let by_place = self.by_place.borrow();
        let (place, child) = by_place.last_key_value()?;
        Some((*place, child.as_ref().map(|child| child.clone_box())))
    }

    /// All that were born, in the order of their start. Nobody is restarted any more.
    pub(crate) fn take(&self) -> Vec<Box<dyn AnyAddr>> {
        self.end_rounds();
        let by_place = std::mem::take(&mut *self.by_place.borrow_mut());
        by_place.into_values().flatten().collect()
    }

    pub(crate) fn ids(&self) -> Vec<ActorId> {
        let by_place = self.by_place.borrow();
        by_place
            .values()
            .flatten()
            .map(|child| child.id())
            .collect()
    }

    /// Nobody is restarted any more: those that wait for it end.
    pub(crate) fn end_rounds(&self) {
        if let Some(rounds) = self.rounds.take() {
            rounds.abort();
        }
        let failed = std::mem::take(&mut *self.failed.borrow_mut());
        drop(failed);
    }

    fn post(&self, place: u64, control: Control) -> bool {
        let child = match self.by_place.borrow().get(&place) {
            Some(Some(child)) => child.clone_box(),
            _ => return false,
        };
        child.post(control);
        true
    }

    /// Takes those that have failed since the last call.
    fn take_failed(&self) -> BTreeMap<u64, GoOn> {
        std::mem::take(&mut *self.failed.borrow_mut())
    }

    /// Whom the failure of `place` concerns, in the order of their start.
    fn concerned(&self, place: u64) -> Vec<u64> {
        let first = match self.strategy.get() {
            Strategy::OneForOne | Strategy::RestForOne => place,
            Strategy::OneForAll => 0,
        };
        let by_place = self.by_place.borrow();
        by_place.range(first..).map(|(place, _)| *place).collect()
    }
}

/// A child has failed and wants to go on.
pub(crate) fn failed<A: Actor>(parent: &Mailbox<A>, place: u64, go_on: GoOn) {
    let children = &parent.bonds().children;
    if !children.contains(place) {
        return;
    }
    if children.strategy.get() == Strategy::OneForOne {
        // When it has started concerns nobody else.
        let (started, _) = oneshot::channel();
        drop(go_on.send(started));
        return;
    }
    children.failed.borrow_mut().insert(place, go_on);
    let rounds = children.rounds.take();
    if let Some(rounds) = rounds.filter(|rounds| !rounds.is_finished()) {
        children.rounds.set(Some(rounds));
    } else {
        let rounds = greenroom_runtime::spawn(restart_together(parent.id()));
        children.rounds.set(Some(rounds));
    }
}

/// How long a child that is to be restarted with others may go on with its message.
const HALT_GRACE: Duration = Duration::from_secs(5);

/// Restarts children together: those that have failed, and those that this concerns.
///
/// They are halted in the reverse order of their start, and go on in that order, each when the one before it has started. A
/// child that is halted keeps its mailbox. Whoever fails meanwhile makes this begin anew.
async fn restart_together<A: Actor>(parent: ResidentId<Mailbox<A>>) {
    let mut halted: BTreeMap<u64, GoOn> = BTreeMap::new();
    // Ends with the parent: what waits to go on then ends too.
    while let Some(failed) = parent.visit(|parent| parent.bonds().children.take_failed()) {
        if let Some(&first) = failed.keys().next() {
            halted.extend(failed);
            let concerned = parent.visit(|parent| parent.bonds().children.concerned(first));
            for place in concerned.into_iter().flatten().rev() {
                if !halted.contains_key(&place)
                    && let Some(waits) = halt(parent, place).await
                {
                    halted.insert(place, waits);
                }
            }
        } else if halted.is_empty() {
            return;
        } else {
            go_on(parent, &mut halted).await;
        }
    }
}

/// Waits until a child has halted; `None` if it ended instead, or failed by itself.
async fn halt<A: Actor>(parent: ResidentId<Mailbox<A>>, place: u64) -> Option<GoOn> {
    let (halted, mut waits) = oneshot::channel();
    let post = |control| parent.visit(|parent| parent.bonds().children.post(place, control));
    if post(Control::Halt(halted)) != Some(true) {
        return None;
    }
    match time::timeout(HALT_GRACE, &mut waits).await {
        Ok(halted) => halted.ok(),
        Err(_) => {
            post(Control::Cut);
            waits.await.ok()
        }
    }
}

/// Lets those that wait go on, one after the other, as long as none fails.
async fn go_on<A: Actor>(parent: ResidentId<Mailbox<A>>, halted: &mut BTreeMap<u64, GoOn>) {
    while let Some((_, waits)) = halted.pop_first() {
        let (started, has_started) = oneshot::channel();
        if waits.send(started).is_ok() {
            // One that does not start fails once more, or is gone for good.
            let _started: Result<(), oneshot::Canceled> = has_started.await;
        }
        let failed = |parent: &Mailbox<A>| !parent.bonds().children.failed.borrow().is_empty();
        if parent.visit(failed) != Some(false) {
            return;
        }
    }
}
