//! Who waits, in the order they came, and what they were given.
//!
//! ```text
//!  join ──► waiting ──grant──► waking ──next_waker──► told
//!              │                  │                     │
//!              └──────────────────┴───── leave ─────────┴──► gone
//! ```
//! A grant writes what a waiter gets into its node and makes it due to be woken, all under one borrow. The wakers are then
//! taken out one by one and woken with nothing borrowed. So whatever a waker or a destructor does in between, every
//! grant is in its node already, and the future that owns the node finds it there or, when it is dropped, passes it on.
//!
//! Nodes lie in one vector and are linked by index: joining and leaving take constant time, and memory only when more wait
//! than ever before.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use super::sharing::Sharing;
use crate::shard::context;
use crate::task::{coop, discard_payload};

/// The waiters of one condition. `S` is what a waiter asks for and is given.
pub(super) struct Waiters<S> {
    nodes: Slab<Node<S>>,
    waiting: List,
    waking: List,
}

/// A waiter's node. It is the future's own: nobody else makes it leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(usize);

struct Node<S> {
    state: S,
    /// `None` once it was woken.
    waker: Option<Waker>,
    on: On,
    /// Neighbours on the list that `on` names, or `NONE`.
    previous: usize,
    next: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Waiting,
    Waking,
    Neither,
}

#[derive(Clone, Copy)]
struct List {
    first: usize,
    last: usize,
}

/// The end of a list: no index of a node.
const NONE: usize = usize::MAX;

impl List {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

impl<S: Copy> Waiters<S> {
    pub(super) fn new() -> Self {
        Self {
            nodes: Slab::new(),
            waiting: List::EMPTY,
            waking: List::EMPTY,
        }
    }

    /// Whether nobody waits without having been given something.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.first == NONE
    }

    /// Waits with the waker, if one is there: at the back, or in the place already held. One that was given something
    /// and still is not content goes to the back again. The waker that this one replaces is left in its stead, for the
    /// caller to drop.
    pub(super) fn wait(&mut self, key: &mut Option<Key>, state: S, waker: &mut Option<Waker>) {
        if waker.is_none() {
            return;
        }
        if let Some(Key(index)) = *key {
            mem::swap(&mut self.nodes[index].waker, waker);
            if self.nodes[index].on != On::Waiting {
                self.unlink(index);
                self.nodes[index].state = state;
                self.append(index, On::Waiting);
            }
            return;
        }
        let index = self.nodes.insert(Node {
            state,
            waker: waker.take(),
            on: On::Neither,
            previous: NONE,
            next: NONE,
        });
        self.append(index, On::Waiting);
        *key = Some(Key(index));
    }

    /// What the waiter asks for, or was given.
    pub(super) fn state(&self, key: Key) -> S {
        self.nodes[key.0].state
    }

    /// What the first of those that wait asks for.
    pub(super) fn first(&self) -> Option<S> {
        self.nodes.get(self.waiting.first).map(|node| node.state)
    }

    /// Gives the first of those that wait something; false if nobody waits.
    pub(super) fn grant_first(&mut self, state: S) -> bool {
        let index = self.waiting.first;
        if index == NONE {
            return false;
        }
        self.unlink(index);
        self.nodes[index].state = state;
        self.append(index, On::Waking);
        true
    }

    /// Gives everyone who waits now the same.
    pub(super) fn grant_all(&mut self, state: S) {
        while self.grant_first(state) {}
    }

    /// The waker of the next one that was given something and is not told yet.
    #[inline]
    pub(super) fn next_waker(&mut self) -> Option<Waker> {
        let index = self.waking.first;
        if index == NONE {
            return None;
        }
        self.unlink(index);
        self.nodes[index].waker.take()
    }

    /// Takes the waiter out: returns its state, and its waker for the caller to drop.
    pub(super) fn leave(&mut self, key: Key) -> (S, Option<Waker>) {
        self.unlink(key.0);
        let node = self.nodes.remove(key.0);
        (node.state, node.waker)
    }

    fn list(&mut self, on: On) -> Option<&mut List> {
        match on {
            On::Waiting => Some(&mut self.waiting),
            On::Waking => Some(&mut self.waking),
            On::Neither => None,
        }
    }

    fn append(&mut self, index: usize, on: On) {
        debug_assert_eq!(self.nodes[index].on, On::Neither);
        let Some(list) = self.list(on) else { return };
        let last = mem::replace(&mut list.last, index);
        if last == NONE {
            list.first = index;
        } else {
            self.nodes[last].next = index;
        }
        let node = &mut self.nodes[index];
        node.on = on;
        node.previous = last;
        node.next = NONE;
    }

    fn unlink(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        let (previous, next) = (node.previous, node.next);
        let on = mem::replace(&mut node.on, On::Neither);
        let Some(list) = self.list(on) else { return };
        if previous == NONE {
            list.first = next;
        }
        if next == NONE {
            list.last = previous;
        }
        if previous != NONE {
            self.nodes[previous].next = next;
        }
        if next != NONE {
            self.nodes[next].previous = previous;
        }
    }
}

/// Polls `step` without a waker and, if it is pending, once more with one, which it takes to register.
///
/// In between, with nothing borrowed, the waker is cloned: that may be anyone's code. A waker that `step` leaves behind is
/// dropped here, for the same reason. What is ready costs a unit of the task's budget.
pub(super) fn poll_step<T>(
    cx: &mut Context<'_>,
    mut step: impl FnMut(&mut Option<Waker>) -> Poll<T>,
) -> Poll<T> {
    coop::poll(cx, |cx| {
        let mut waker = None;
        let polled = step(&mut waker);
        if polled.is_ready() {
            return polled;
        }
        waker = Some(cx.waker().clone());
        step(&mut waker)
    })
}

/// Stores the waker, if one is there, and leaves the one that was stored for the caller to drop.
pub(super) fn register(place: &mut Option<Waker>, waker: &mut Option<Waker>) {
    if waker.is_some() {
        mem::swap(place, waker);
    }
}

/// Wakes whoever `next` still finds, each with nothing borrowed.
pub(super) fn wake_all<K: Sharing, S>(
    shared: &K::Shared<S>,
    next: impl Fn(&mut S) -> Option<Waker>,
) {
    while let Some(waker) = K::with(shared, &next) {
        wake(waker);
    }
}

/// Wakes one waiter. If the waker panics, the others, and whoever wakes, go on; the shard counts it.
pub(super) fn wake(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        context::with(|shard| shard.count_stray_panic());
        discard_payload(payload);
    }
}

/// Waits until something is true of a state: whatever changes that grants all of `list`.
pub(super) struct Until<K: Sharing, S, F> {
    shared: K::Shared<S>,
    list: fn(&mut S) -> &mut Waiters<()>,
    check: F,
    key: Option<Key>,
}

/// Resolves to what `check` returns once it returns something.
pub(super) fn until<K: Sharing, S, F>(
    shared: &K::Shared<S>,
    list: fn(&mut S) -> &mut Waiters<()>,
    check: F,
) -> Until<K, S, F> {
    Until {
        shared: shared.clone(),
        list,
        check,
        key: None,
    }
}

impl<K: Sharing, S, F> Unpin for Until<K, S, F> {}

impl<K: Sharing, S, T, F: FnMut(&mut S) -> Option<T>> Future for Until<K, S, F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        poll_step(cx, |waker| {
            K::with(&this.shared, |state| {
                let found = (this.check)(state);
                let list = (this.list)(state);
                if found.is_none() {
                    list.wait(&mut this.key, (), waker);
                } else if let Some(key) = this.key.take() {
                    (_, *waker) = list.leave(key);
                }
                found.map_or(Poll::Pending, Poll::Ready)
            })
        })
    }
}

impl<K: Sharing, S, F> Drop for Until<K, S, F> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            let (_, waker) = K::with(&self.shared, |state| (self.list)(state).leave(key));
            drop(waker);
        }
    }
}
