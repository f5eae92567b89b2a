//! A subscriber: what it was sent and has not taken yet, and what it missed.
//!
//! A queue has a bound. A value that finds it full takes the place of the oldest one, and the subscriber is told how many it
//! missed, in the place where they are missing. A publisher that waits for room is different: its value goes in beyond the
//! bound, and it is let go when the value has come within the bound; so beyond it there is one value for each publisher
//! that waits.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_channel::oneshot;

use super::topic::{Hall, TopicShared};

/// What a subscriber hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<T> {
    /// A value that was published.
    Value(T),
    /// So many values were published here that the subscriber missed, as it was too slow.
    Missed(u64),
}

/// A publisher that waits; let go when the last copy of this is dropped.
pub(super) type Patience = Rc<oneshot::Sender<()>>;

enum Item<T> {
    Value(T, Option<Patience>),
    Missed(u64),
}

/// The queue of a subscriber. Touched by its own shard alone; no foreign code runs while it is borrowed.
pub(super) struct Queue<T> {
    state: RefCell<State<T>>,
    bound: usize,
}

struct State<T> {
    items: VecDeque<Item<T>>,
    /// Missed before the oldest item.
    missed: u64,
    reader: Option<Waker>,
}

impl<T> Queue<T> {
    pub(super) fn new(bound: usize) -> Self {
        Self {
            state: RefCell::new(State {
                items: VecDeque::new(),
                missed: 0,
                reader: None,
            }),
            bound,
        }
    }

    pub(super) fn push(&self, value: T, patience: Option<&Patience>) {
        let (lost, released, reader) = {
            let mut state = self.state.borrow_mut();
            let is_full = state.items.len() >= self.bound;
            let lost = if is_full && patience.is_none() {
                state.items.pop_front()
            } else {
                None
            };
            state.missed += match &lost {
                None => 0,
                Some(Item::Value(..)) => 1,
                Some(Item::Missed(count)) => *count,
            };
            let released = lost.as_ref().and_then(|_| self.let_go(&mut state));
            let patience = patience.filter(|_| is_full).cloned();
            state.items.push_back(Item::Value(value, patience));
            (lost, released, state.reader.take())
        };
        drop(lost);
        drop(released);
        wake(reader);
    }

    /// So many values did not come here.
    pub(super) fn miss(&self, count: u64) {
        let reader = {
            let mut state = self.state.borrow_mut();
            match state.items.back_mut() {
                None => state.missed += count,
                Some(Item::Missed(missed)) => *missed += count,
                Some(Item::Value(..)) => state.items.push_back(Item::Missed(count)),
            }
            state.reader.take()
        };
        wake(reader);
    }

    /// Something was taken out: the publisher of what came within the bound may go on.
    fn let_go(&self, state: &mut State<T>) -> Option<Patience> {
        match state.items.get_mut(self.bound - 1) {
            Some(Item::Value(_, patience)) => patience.take(),
            _ => None,
        }
    }

    fn take(&self) -> Option<News<T>> {
        let (first, released) = {
            let mut state = self.state.borrow_mut();
            if state.missed > 0 {
                return Some(News::Missed(std::mem::take(&mut state.missed)));
            }
            let first = state.items.pop_front()?;
            (first, self.let_go(&mut state))
        };
        // Wakes, which may be anyone's code.
        drop(released);
        Some(match first {
            Item::Missed(count) => News::Missed(count),
            Item::Value(value, _) => News::Value(value),
        })
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<News<T>> {
        if let Some(news) = self.take() {
            return Poll::Ready(news);
        }
        // Cloned and dropped out of the borrow: wakers may be anyone's code, which is why the queue is looked at again.
        let waker = cx.waker().clone();
        let last = self.state.borrow_mut().reader.replace(waker);
        drop(last);
        self.take().map_or(Poll::Pending, Poll::Ready)
    }

    fn len(&self) -> usize {
        self.state.borrow().items.len()
    }
}

fn wake(reader: Option<Waker>) {
    if let Some(reader) = reader {
        crate::life::contain(|| reader.wake());
    }
}

/// A place among the subscribers of a topic, on one shard; given up when it is dropped.
///
/// It gets what is published after it was made. Got from [`Topic::subscribe`](crate::Topic::subscribe).
///
/// # Shard affinity
/// `!Send`: values wait on the shard of the subscriber.
pub struct Subscription<T: Clone + Send + 'static> {
    queue: Rc<Queue<T>>,
    number: u64,
    topic: Arc<TopicShared<T>>,
}

impl<T: Clone + Send + 'static> Subscription<T> {
    pub(super) fn new(queue: Rc<Queue<T>>, number: u64, topic: Arc<TopicShared<T>>) -> Self {
        Self {
            queue,
            number,
            topic,
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Waits for the next value, or for the news that some were missed.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> News<T> {
        std::future::poll_fn(|cx| self.queue.poll_next(cx)).await
    }

    /// What is there already, without waiting.
    pub fn try_next(&mut self) -> Option<News<T>> {
        self.queue.take()
    }

    /// How many values wait to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no value waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Never ends.
impl<T: Clone + Send + 'static> futures_core::Stream for Subscription<T> {
    type Item = News<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<News<T>>> {
        self.queue.poll_next(cx).map(Some)
    }
}

impl<T: Clone + Send + 'static> Drop for Subscription<T> {
    fn drop(&mut self) {
        Hall::leave(&self.topic, self.number);
    }
}

impl<T: Clone + Send + 'static> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
