//! Counted permits, handed out in the order they were asked for. Pure state: the room of a channel, or a semaphore.

use std::task::{Poll, Waker};

use super::waiters::{Key, Waiters};

/// What a waiter asks for, or was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Wants(usize),
    /// Taken from the permits already: whoever gives the request up gives them back.
    Has(usize),
    Refused,
}

/// Why permits could not be taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There are too few, or others came first.
    Short,
    Closed,
}

/// Permits, and those who wait for some.
pub(super) struct Permits {
    /// Invariant: fewer than what the first waiter wants.
    available: usize,
    is_closed: bool,
    waiters: Waiters<Request>,
}

impl Permits {
    pub(super) fn new(count: usize) -> Self {
        Self {
            available: count,
            is_closed: false,
            waiters: Waiters::new(),
        }
    }

    pub(super) fn available(&self) -> usize {
        self.available
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Takes permits if there are enough and nobody waits.
    #[inline]
    pub(super) fn try_take(&mut self, count: usize) -> Result<(), Refusal> {
        if self.is_closed {
            return Err(Refusal::Closed);
        }
        if self.available < count || !(self.waiters.is_empty() || count == 0) {
            return Err(Refusal::Short);
        }
        self.available -= count;
        Ok(())
    }

    /// Takes permits as soon as there are enough and all who came earlier have theirs. An error says that it was closed.
    #[inline]
    pub(super) fn poll_take(
        &mut self,
        count: usize,
        key: &mut Option<Key>,
        waker: &mut Option<Waker>,
    ) -> Poll<Result<(), Refusal>> {
        let taken = match key.map(|key| self.waiters.state(key)) {
            None => self.try_take(count),
            Some(Request::Wants(_)) => Err(Refusal::Short),
            Some(Request::Has(_)) => Ok(()),
            Some(Request::Refused) => Err(Refusal::Closed),
        };
        if taken == Err(Refusal::Short) {
            self.waiters.wait(key, Request::Wants(count), waker);
            return Poll::Pending;
        }
        if let Some(key) = key.take() {
            (_, *waker) = self.waiters.leave(key);
        }
        Poll::Ready(taken)
    }

    /// A waiter is dropped: what it was given goes on to the next. Returns its waker.
    pub(super) fn withdraw(&mut self, key: Key) -> Option<Waker> {
        let (request, waker) = self.waiters.leave(key);
        // Also after one that was given nothing: it may have been what the next one waited behind.
        self.give(match request {
            Request::Has(count) => count,
            Request::Wants(_) | Request::Refused => 0,
        });
        waker
    }

    /// Adds permits, and grants what can be granted now. More than fit in a `usize` are not counted.
    #[inline]
    pub(super) fn give(&mut self, count: usize) {
        self.available = self.available.saturating_add(count);
        while let Some(Request::Wants(wanted)) = self.waiters.first() {
            if wanted > self.available {
                break;
            }
            self.available -= wanted;
            self.waiters.grant_first(Request::Has(wanted));
        }
    }

    /// Takes up to `count` permits away for good; returns how many there were.
    pub(super) fn forget(&mut self, count: usize) -> usize {
        let forgotten = count.min(self.available);
        self.available -= forgotten;
        forgotten
    }

    /// Refuses all who wait, and all who come.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.waiters.grant_all(Request::Refused);
    }

    /// See [`Waiters::next_waker`].
    #[inline]
    pub(super) fn next_waker(&mut self) -> Option<Waker> {
        self.waiters.next_waker()
    }
}
