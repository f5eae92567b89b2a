//! A gate in front of the end: whoever works on a shard holds a pass, and closing the gate waits until all are back.
//!
//! A closed gate ends waiting, not working: what is awaited through [`Pass::unless_closed`] is given up, and everything
//! else goes on to its end.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use slab::Slab;

/// The gate of one shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    state: Rc<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: Cell<bool>,
    /// Whoever is inside; a waker for those who wait.
    inside: RefCell<Slab<Option<Waker>>>,
    /// Whoever waits for the last one to leave.
    closer: RefCell<Option<Waker>>,
}

/// The right to be inside, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Gate,
    key: usize,
}

impl Gate {
    pub(crate) fn enter(&self) -> Pass {
        let key = self.state.inside.borrow_mut().insert(None);
        Pass {
            gate: self.clone(),
            key,
        }
    }

    /// Ends all waiting inside, and waits until nobody is left.
    pub(crate) async fn close(&self) {
        self.state.closed.set(true);
        let waiting: Vec<_> = {
            let mut inside = self.state.inside.borrow_mut();
            inside
                .iter_mut()
                .filter_map(|(_, waker)| waker.take())
                .collect()
        };
        waiting.into_iter().for_each(Waker::wake);
        poll_fn(|cx| {
            if self.state.inside.borrow().is_empty() {
                return Poll::Ready(());
            }
            self.state.closer.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

impl Pass {
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Awaits a future, or gives it up, now or later, when the gate is closed.
    pub(crate) async fn unless_closed<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            if self.gate.state.closed.get() {
                return Poll::Ready(None);
            }
            let polled = future.as_mut().poll(cx);
            if polled.is_pending() {
                self.remember(cx);
            }
            polled.map(Some)
        })
        .await
    }

    fn remember(&self, cx: &Context<'_>) {
        let mut inside = self.gate.state.inside.borrow_mut();
        match &mut inside[self.key] {
            Some(known) => known.clone_from(cx.waker()),
            unknown => *unknown = Some(cx.waker().clone()),
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let state = &self.gate.state;
        let mut inside = state.inside.borrow_mut();
        inside.remove(self.key);
        let is_last = inside.is_empty();
        drop(inside);
        if is_last && let Some(closer) = state.closer.take() {
            closer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_closed_gate_ends_waiting_and_waits_for_work() {
        let gate = Gate::default();
        let pass = gate.enter();
        let worker = gate.enter();
        assert_eq!(
            poll(&mut Box::pin(pass.unless_closed(ready(1)))),
            Poll::Ready(Some(1))
        );
        {
            let mut waiting = Box::pin(pass.unless_closed(pending::<()>()));
            assert_eq!(poll(&mut waiting), Poll::Pending);
            let mut closing = Box::pin(gate.close());
            assert_eq!(poll(&mut closing), Poll::Pending);
            assert_eq!(poll(&mut waiting), Poll::Ready(None));
        }
        let mut closing = Box::pin(gate.close());
        drop(pass);
        assert_eq!(poll(&mut closing), Poll::Pending);
        drop(worker);
        assert_eq!(poll(&mut closing), Poll::Ready(()));
    }
}
