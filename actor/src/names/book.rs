//! A list of names, and who waits for which.
//!
//! # States of a name
//! ```text
//!  free ──claim──► claimed ──fill──► held ──┐
//!   ▲                 │ start failed        │ unregistered, actor ended
//!   └─────────────────┴─────────────────────┘
//! ```
//! A *claimed* name has no address yet: its actor's factory runs. Whoever claims it meanwhile is refused; whoever waits for
//! it waits on.
//!
//! Nothing here calls foreign code, so that a book may be changed under a lock: what is to be woken or dropped is handed out.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use futures_channel::oneshot;
use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::ResidentId;

use super::error::Named;
use crate::actor::Actor;
use crate::mailbox::Mailbox;

/// Told, by its drop, that a name it waits for is held now.
pub(super) type Waiter = oneshot::Sender<()>;

/// An actor that holds a name.
pub(super) struct Holder {
    /// The [`ResidentId`] of its mailbox, which proves its type.
    id: Box<dyn Any + Send + Sync>,
    actor: &'static str,
    type_name: &'static str,
    number: (u16, u64),
    /// Among the things its mailbox releases at its end.
    pub(super) belonging: u64,
}

impl Holder {
    pub(super) fn new<A: Actor>(id: ResidentId<Mailbox<A>>, belonging: u64) -> Self {
        Self {
            id: Box::new(id),
            actor: A::NAME,
            type_name: std::any::type_name::<A>(),
            number: id.number(),
            belonging,
        }
    }

    /// Its address, if it is an actor of this type.
    pub(super) fn of_type<A: Actor>(&self) -> Option<ResidentId<Mailbox<A>>> {
        self.id.downcast_ref().copied()
    }

    pub(super) fn is<A: Actor>(&self, id: ResidentId<Mailbox<A>>) -> bool {
        self.of_type() == Some(id)
    }
}

struct Entry {
    /// Tells apart the claims on one name, one after the other.
    claim: u64,
    shard: ShardId,
    /// `None` while its actor is being made.
    holder: Option<Holder>,
}

impl Entry {
    fn describe(&self, name: &Arc<str>) -> Named {
        Named {
            name: name.clone(),
            shard: self.shard,
            actor: self.holder.as_ref().map(|holder| holder.actor),
            type_name: self.holder.as_ref().map(|holder| holder.type_name),
            number: self.holder.as_ref().map(|holder| holder.number),
        }
    }
}

/// What a look at a name finds.
pub(super) enum Found<R> {
    Free,
    /// Somebody has it, and has no address yet.
    Claimed,
    Held(R, Named),
}

/// Names of one scope, or of a part of one.
#[derive(Default)]
pub(super) struct Book {
    entries: BTreeMap<Arc<str>, Entry>,
    waiters: BTreeMap<(Arc<str>, u64), Waiter>,
    /// For claims and waiters.
    next: u64,
}

impl Book {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Takes a free name; returns the number of the claim.
    pub(super) fn claim(&mut self, name: &Arc<str>, shard: ShardId) -> Result<u64, Named> {
        if let Some(entry) = self.entries.get(name) {
            return Err(entry.describe(name));
        }
        let claim = self.number();
        let entry = Entry {
            claim,
            shard,
            holder: None,
        };
        self.entries.insert(name.clone(), entry);
        Ok(claim)
    }

    /// Gives a claimed name its holder; returns who waited for that.
    pub(super) fn fill(&mut self, name: &Arc<str>, claim: u64, holder: Holder) -> Vec<Waiter> {
        let entry = self.entries.get_mut(name);
        let Some(entry) = entry.filter(|entry| entry.claim == claim) else {
            return Vec::new();
        };
        entry.holder = Some(holder);
        let all = (name.clone(), 0)..=(name.clone(), u64::MAX);
        let waiting: Vec<_> = self
            .waiters
            .range(all)
            .map(|(key, _)| key.clone())
            .collect();
        let taken = waiting.iter().filter_map(|key| self.waiters.remove(key));
        taken.collect()
    }

    /// Frees a name, unless it belongs to another claim by now.
    pub(super) fn release(&mut self, name: &Arc<str>, claim: u64) -> bool {
        let is_ours = self
            .entries
            .get(name)
            .is_some_and(|entry| entry.claim == claim);
        // A holder is made of ids, so its drop is nobody's code.
        is_ours && self.entries.remove(name).is_some()
    }

    /// Looks a name up; `look` says what is wanted of its holder.
    pub(super) fn find<R>(&self, name: &str, look: impl FnOnce(&Holder) -> R) -> Found<R> {
        match self.entries.get_key_value(name) {
            None => Found::Free,
            Some((_, Entry { holder: None, .. })) => Found::Claimed,
            Some((
                name,
                entry @ Entry {
                    holder: Some(holder),
                    ..
                },
            )) => Found::Held(look(holder), entry.describe(name)),
        }
    }

    /// Joins those who wait for a name.
    pub(super) fn wait(&mut self, name: &Arc<str>, waiter: Waiter) -> u64 {
        let number = self.number();
        self.waiters.insert((name.clone(), number), waiter);
        number
    }

    /// Leaves those who wait for a name.
    pub(super) fn leave(&mut self, name: &Arc<str>, number: u64) -> Option<Waiter> {
        self.waiters.remove(&(name.clone(), number))
    }

    /// All names that are claimed or held.
    pub(super) fn list(&self) -> impl Iterator<Item = Named> + '_ {
        self.entries
            .iter()
            .map(|(name, entry)| entry.describe(name))
    }

    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.waiters.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder() -> Holder {
        Holder {
            id: Box::new(()),
            actor: "Test",
            type_name: "test::Test",
            number: (0, 1),
            belonging: 0,
        }
    }

    #[test]
    fn a_late_release_does_not_free_the_name_of_the_next_holder() {
        let mut book = Book::default();
        let name: Arc<str> = "a".into();
        let first = book.claim(&name, 0.into()).unwrap();
        assert!(book.release(&name, first));
        let second = book.claim(&name, 0.into()).unwrap();
        assert!(!book.release(&name, first));
        assert!(book.claim(&name, 0.into()).is_err());
        assert!(book.release(&name, second));
        assert_eq!(book.list().count(), 0);
    }

    #[test]
    fn those_who_wait_for_a_name_are_handed_out_when_it_is_held_and_others_stay() {
        let mut book = Book::default();
        let (wanted, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        for name in [&wanted, &other, &wanted] {
            book.wait(name, oneshot::channel().0);
        }
        let claim = book.claim(&wanted, 0.into()).unwrap();
        assert_eq!(book.waiting(), 3, "a claim is no address");
        assert_eq!(book.fill(&wanted, claim, holder()).len(), 2);
        assert_eq!(book.waiting(), 1);
    }

    #[test]
    fn one_who_gives_up_leaves_nothing_behind() {
        let mut book = Book::default();
        let name: Arc<str> = "a".into();
        let number = book.wait(&name, oneshot::channel().0);
        assert!(book.leave(&name, number).is_some());
        assert_eq!(book.waiting(), 0);
    }
}
