//! Watching an actor, and being linked with one.
//!
//! A *watcher* lies with the actor it watches and tells its one `Down` whatever becomes of it: at the end of the actor, or when
//! it is dropped on the way there, as the actor was gone. An actor that watches keeps a list of whom it watches, so that it can
//! take its watchers back when it ends itself.
//!
//! A *link* is an entry in that list on both sides. Whoever ends tells those it is linked with.

use std::collections::BTreeMap;

use futures_channel::oneshot;
use greenroom_runtime::ShardId;

use super::control::{AnyAddr, Control};
use super::exit::{ActorId, Down, ExitReason};

/// Somebody who is told of an end, once.
#[expect(unnameable_types, reason = "in a hidden type")]
#[derive(Debug)]
pub struct Watcher {
    hearer: Option<Hearer>,
    /// What can be said of an actor that is gone.
    gone: Gone,
}

#[derive(Debug)]
enum Hearer {
    Future(oneshot::Sender<Down>),
    Actor(Box<dyn AnyAddr>),
}

/// Whom a watcher watches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone {
    pub(crate) id: ActorId,
    pub(crate) name: &'static str,
    pub(crate) shard: Option<ShardId>,
}

impl Gone {
    pub(crate) fn down(self, reason: ExitReason) -> Down {
        let Self { id, name, shard } = self;
        Down {
            id,
            name,
            shard,
            reason,
        }
    }
}

impl Watcher {
    pub(crate) fn future(gone: Gone) -> (Self, oneshot::Receiver<Down>) {
        let (sender, receiver) = oneshot::channel();
        let hearer = Some(Hearer::Future(sender));
        (Self { hearer, gone }, receiver)
    }

    pub(crate) fn actor(hearer: Box<dyn AnyAddr>, gone: Gone) -> Self {
        let hearer = Some(Hearer::Actor(hearer));
        Self { hearer, gone }
    }

    pub(crate) fn tell(mut self, down: &Down) {
        if let Some(hearer) = self.hearer.take() {
            hearer.tell(down.clone());
        }
    }

    fn is_of(&self, id: ActorId) -> bool {
        matches!(&self.hearer, Some(Hearer::Actor(actor)) if actor.id() == id)
    }

    fn is_heard(&self) -> bool {
        !matches!(&self.hearer, Some(Hearer::Future(sender)) if sender.is_canceled())
    }
}

impl Hearer {
    fn tell(self, down: Down) {
        match self {
            // It may not wait any more.
            Self::Future(sender) => drop(sender.send(down)),
            Self::Actor(actor) => actor.post(Control::Down(down)),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(hearer) = self.hearer.take() {
            hearer.tell(self.gone.down(ExitReason::Unknown));
        }
    }
}

/// An actor that wants to be linked; it hears if that is too late.
#[expect(unnameable_types, reason = "in a hidden type")]
#[derive(Debug)]
pub struct LinkOffer {
    peer: Option<Box<dyn AnyAddr>>,
    gone: Gone,
}

impl LinkOffer {
    pub(crate) fn new(peer: Box<dyn AnyAddr>, gone: Gone) -> Self {
        let peer = Some(peer);
        Self { peer, gone }
    }

    pub(crate) fn accept(mut self) -> Option<Box<dyn AnyAddr>> {
        self.peer.take()
    }
}

impl Drop for LinkOffer {
    fn drop(&mut self) {
        if let Some(peer) = self.peer.take() {
            peer.post(Control::Linked(self.gone.down(ExitReason::Unknown)));
        }
    }
}

/// Those who watch an actor.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    list: Vec<Watcher>,
    /// At this length those who do not wait any more are taken out.
    full: usize,
}

impl Watchers {
    pub(crate) fn add(&mut self, watcher: Watcher) {
        const LEAST: usize = 16;
        if self.list.len() >= self.full.max(LEAST) {
            self.list.retain(Watcher::is_heard);
            self.full = 2 * self.list.len();
        }
        self.list.push(watcher);
    }

    /// Takes an actor's watcher out, for the caller to drop outside of any borrow.
    pub(crate) fn remove(&mut self, id: ActorId) -> Option<Watcher> {
        let at = self.list.iter().position(|watcher| watcher.is_of(id))?;
        let mut watcher = self.list.swap_remove(at);
        // It asked for this, or is gone.
        watcher.hearer = None;
        Some(watcher)
    }

    pub(crate) fn take(&mut self) -> Vec<Watcher> {
        std::mem::take(&mut self.list)
    }
}

/// One actor whose end concerns another.
#[derive(Debug)]
pub(crate) struct Concern {
    actor: Box<dyn AnyAddr>,
    watched: bool,
    linked: bool,
}

/// The actors whose end concerns one incarnation of an actor.
#[derive(Debug, Default)]
pub(crate) struct Concerns {
    by_id: BTreeMap<ActorId, Concern>,
}

impl Concerns {
    /// Whether it was not watched before.
    pub(crate) fn watch(&mut self, actor: Box<dyn AnyAddr>) -> bool {
        !std::mem::replace(&mut self.entry(actor).watched, true)
    }

    /// Whether it was not linked before.
    pub(crate) fn link(&mut self, actor: Box<dyn AnyAddr>) -> bool {
        !std::mem::replace(&mut self.entry(actor).linked, true)
    }

    fn entry(&mut self, actor: Box<dyn AnyAddr>) -> &mut Concern {
        self.by_id.entry(actor.id()).or_insert_with(|| Concern {
            actor,
            watched: false,
            linked: false,
        })
    }

    /// Whether it was watched.
    pub(crate) fn unwatch(&mut self, id: ActorId) -> bool {
        self.change(id, |concern| std::mem::take(&mut concern.watched))
    }

    /// Whether it was linked.
    pub(crate) fn unlink(&mut self, id: ActorId) -> bool {
        self.change(id, |concern| std::mem::take(&mut concern.linked))
    }

    fn change(&mut self, id: ActorId, take: impl FnOnce(&mut Concern) -> bool) -> bool {
        let Some(concern) = self.by_id.get_mut(&id) else {
            return false;
        };
        let was = take(concern);
        if !concern.watched && !concern.linked {
            self.by_id.remove(&id);
        }
        was
    }

    /// Gives all of them up, with what those that are linked are to hear.
    pub(crate) fn give_up(&mut self, down: &Down) {
        for (_, concern) in std::mem::take(&mut self.by_id) {
            if concern.linked {
                concern.actor.post(Control::Linked(down.clone()));
            }
            if concern.watched {
                concern.actor.post(Control::Unwatch(down.id));
            }
        }
    }
}
