//! What an actor has beside its state, and what is released when it ends: names, memberships, subscriptions.
//!
//! Each is a value whose drop gives it up. They are dropped when the state is gone and what was not handled has been handed
//! back, before anybody hears of the end: who is told that an actor has ended finds its name free.

use std::any::Any;
use std::cell::{Cell, RefCell};

use super::{Mailbox, Phase};
use crate::actor::Actor;
use crate::life::contain;
use crate::names::name_of;

#[derive(Default)]
pub(super) struct Belongings {
    next: Cell<u64>,
    owned: RefCell<Vec<(u64, Box<dyn Any>)>>,
}

impl Belongings {
    /// In the reverse order of their coming. Drops may be anyone's code, and may take others out.
    pub(super) fn release(&self) {
        loop {
            let last = self.owned.borrow_mut().pop();
            let Some(last) = last else { return };
            contain(|| drop(last));
        }
    }
}

impl<A: Actor> Mailbox<A> {
    /// Keeps a value until the actor ends; gives it back if it has ended. The number is for [`Mailbox::disown`].
    pub(crate) fn own(&self, value: Box<dyn Any>) -> Result<u64, Box<dyn Any>> {
        if self.phase.get() == Phase::Closed {
            return Err(value);
        }
        let belongings = &self.rare().belongings;
        let number = belongings.next.get();
        belongings.next.set(number + 1);
        belongings.owned.borrow_mut().push((number, value));
        Ok(number)
    }

    /// The names by which it is registered.
    pub(crate) fn names(&self) -> Vec<String> {
        let Some(rare) = self.rare.get() else {
            return Vec::new();
        };
        let owned = rare.belongings.owned.borrow();
        let names = owned.iter().filter_map(|(_, value)| name_of(&**value));
        names.map(str::to_owned).collect()
    }

    /// Takes a value out again.
    pub(crate) fn disown(&self, number: u64) -> Option<Box<dyn Any>> {
        let mut owned = self.rare.get()?.belongings.owned.borrow_mut();
        let at = owned
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()?;
        Some(owned.remove(at).1)
    }
}
