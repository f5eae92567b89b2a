//! First come, first served: who waits for room, in the order they came.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::Waker;

/// A place in a [`WaitList`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

impl Ticket {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }
}

/// A queue of waiting tasks on one shard.
///
/// A newcomer may pass only when nobody waits; a waiter may pass only when it is at the front. Whoever passes or gives
/// up wakes the next one, so a place that came free is never lost when its waiter is dropped.
///
/// # Examples
/// ```
/// use greenroom_runtime::mesh::WaitList;
/// use std::task::Waker;
///
/// let list = WaitList::default();
/// assert!(list.may_pass(None), "nobody waits");
/// let ticket = list.join(None, Waker::noop());
/// assert!(!list.may_pass(None), "a newcomer waits its turn");
/// assert!(list.may_pass(Some(ticket)));
/// list.leave(ticket);
/// assert!(list.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct WaitList {
    waiting: RefCell<VecDeque<(Ticket, Waker)>>,
    next: Cell<u64>,
}

impl WaitList {
    /// Whether the holder of the ticket, or a newcomer with none, is first.
    #[must_use]
    #[inline]
    pub fn may_pass(&self, ticket: Option<Ticket>) -> bool {
        match self.waiting.borrow().front() {
            None => true,
            Some((front, _)) => ticket == Some(*front),
        }
    }

    /// Whether nobody waits.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Takes a place at the back, or keeps the one held, to be woken through the waker.
    pub fn join(&self, ticket: Option<Ticket>, waker: &Waker) -> Ticket {
        let ticket = ticket.unwrap_or_else(|| Ticket(self.next.replace(self.next.get() + 1)));
        self.hold(ticket, waker);
        ticket
    }

    /// Holds the place of a ticket, in the order of the tickets, which may come from elsewhere.
    pub(crate) fn hold(&self, ticket: Ticket, waker: &Waker) {
        let is_known = {
            let waiting = self.waiting.borrow();
            let place = waiting.binary_search_by_key(&ticket, |entry| entry.0);
            place.is_ok_and(|index| waiting[index].1.will_wake(waker))
        };
        if is_known {
            return;
        }
        // Out of the borrow, as the drop of the one it replaces: both may be anyone's code.
        let waker = waker.clone();
        let mut waiting = self.waiting.borrow_mut();
        let replaced = match waiting.binary_search_by_key(&ticket, |entry| entry.0) {
            Ok(index) => Some(std::mem::replace(&mut waiting[index].1, waker)),
            Err(index) => {
                waiting.insert(index, (ticket, waker));
                None
            }
        };
        drop(waiting);
        drop(replaced);
    }

    /// Gives a place up, after passing or instead of it.
    pub fn leave(&self, ticket: Ticket) {
        let mut waiting = self.waiting.borrow_mut();
        let place = waiting.binary_search_by_key(&ticket, |entry| entry.0);
        let left = place.ok().and_then(|index| waiting.remove(index));
        drop(waiting);
        // Out of the borrow: the drop of a waker may be anyone's code.
        drop(left);
    }

    /// Wakes the task at the front, which keeps its place until it leaves.
    pub fn wake_front(&self) {
        // Cloned out of the borrow: waking may run foreign code.
        let front = self
            .waiting
            .borrow()
            .front()
            .map(|(_, waker)| waker.clone());
        if let Some(waker) = front {
            waker.wake();
        }
    }

    /// Wakes everybody, for when there is nothing to wait for any more.
    pub fn wake_all(&self) {
        let wakers: Vec<Waker> = self
            .waiting
            .borrow()
            .iter()
            .map(|(_, waker)| waker.clone())
            .collect();
        wakers.into_iter().for_each(Waker::wake);
    }
}
