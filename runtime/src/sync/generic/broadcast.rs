//! Every value to every receiver, with a bound on how far a slow one may fall behind.

use std::collections::VecDeque;
use std::fmt;

use super::super::sharing::Sharing;
use super::super::waiters::{Waiters, until, wake_all};

struct State<T, K: Sharing> {
    /// Invariant: at most `capacity`; `unseen` does not fall from the front to the back, and is not zero.
    buffer: VecDeque<Entry<T, K>>,
    /// The number of the value at the front.
    first: u64,
    capacity: usize,
    senders: usize,
    receivers: usize,
    news: Waiters<()>,
}

struct Entry<T, K: Sharing> {
    value: K::Pointer<T>,
    /// How many receivers have it before them.
    unseen: usize,
}

impl<T, K: Sharing> State<T, K> {
    /// The number that the next value gets.
    fn end(&self) -> u64 {
        self.first + self.buffer.len() as u64
    }

    fn at(&mut self, number: u64) -> Option<&mut Entry<T, K>> {
        let offset = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.buffer.get_mut(offset)
    }

    /// The value with this number, seen by one more receiver; for the last one it leaves the buffer.
    fn see(&mut self, number: u64) -> Option<K::Pointer<T>> {
        let entry = self.at(number)?;
        entry.unseen -= 1;
        if entry.unseen > 0 {
            return Some(entry.value.clone());
        }
        // Whoever has seen this one has seen those before it.
        debug_assert_eq!(number, self.first);
        self.pop().map(|entry| entry.value)
    }

    fn pop(&mut self) -> Option<Entry<T, K>> {
        let entry = self.buffer.pop_front()?;
        self.first += 1;
        Some(entry)
    }

    /// What the receiver whose next value has this number gets now.
    fn next(&mut self, next: &mut u64) -> Result<K::Pointer<T>, TryRecvError> {
        let missed = self.first.saturating_sub(*next);
        if missed > 0 {
            *next = self.first;
            return Err(TryRecvError::Lagged(missed));
        }
        match self.see(*next) {
            Some(value) => {
                *next += 1;
                Ok(value)
            }
            None if self.senders == 0 => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }
}

/// Opens a channel that keeps up to `capacity` values for receivers that are behind; zero counts as one.
pub fn channel<T, K: Sharing>(capacity: usize) -> (Sender<T, K>, Receiver<T, K>) {
    let shared = K::share(State {
        buffer: VecDeque::new(),
        first: 0,
        capacity: capacity.max(1),
        senders: 1,
        receivers: 1,
        news: Waiters::new(),
    });
    (
        Sender {
            shared: shared.clone(),
        },
        Receiver { shared, next: 0 },
    )
}

/// An end that sends. It never waits: a receiver that is too slow misses values, and is told how many.
pub struct Sender<T, K: Sharing> {
    shared: K::Shared<State<T, K>>,
}

impl<T, K: Sharing> Sender<T, K> {
    /// Sends the value to all receivers there are now, and returns how many these are.
    ///
    /// When the buffer is full, its oldest value is dropped.
    ///
    /// # Errors
    /// [`SendError`] gives the value back when there is no receiver.
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        let (count, displaced) = K::with(&self.shared, |state| {
            let unseen = state.receivers;
            if unseen == 0 {
                return Err(SendError(value));
            }
            let is_full = state.buffer.len() == state.capacity;
            let displaced = is_full.then(|| state.pop()).flatten();
            let value = K::point(value);
            state.buffer.push_back(Entry { value, unseen });
            state.news.grant_all(());
            Ok((unseen, displaced))
        })?;
        wake_all::<K, _>(&self.shared, |state| state.news.next_waker());
        drop(displaced);
        Ok(count)
    }

    /// A new receiver, which gets what is sent from now on.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T, K> {
        Receiver::subscribe(&self.shared)
    }

    /// How many receivers there are.
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        K::with(&self.shared, |state| state.receivers)
    }
}

impl<T, K: Sharing> Clone for Sender<T, K> {
    fn clone(&self) -> Self {
        K::with(&self.shared, |state| state.senders += 1);
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T, K: Sharing> Drop for Sender<T, K> {
    fn drop(&mut self) {
        K::with(&self.shared, |state| {
            state.senders -= 1;
            if state.senders == 0 {
                state.news.grant_all(());
            }
        });
        wake_all::<K, _>(&self.shared, |state| state.news.next_waker());
    }
}

/// An end that receives every value sent since it was made, unless it falls behind by more than the capacity.
pub struct Receiver<T, K: Sharing> {
    shared: K::Shared<State<T, K>>,
    /// The number of the next value.
    next: u64,
}

impl<T, K: Sharing> Receiver<T, K> {
    fn subscribe(shared: &K::Shared<State<T, K>>) -> Self {
        let next = K::with(shared, |state| {
            state.receivers += 1;
            state.end()
        });
        Self {
            shared: shared.clone(),
            next,
        }
    }

    /// Another receiver, which gets what is sent from now on.
    #[must_use]
    pub fn resubscribe(&self) -> Self {
        Self::subscribe(&self.shared)
    }

    /// How many values are there to be received.
    #[must_use]
    pub fn len(&self) -> usize {
        let behind = K::with(&self.shared, |state| {
            state.end() - self.next.max(state.first)
        });
        usize::try_from(behind).unwrap_or(usize::MAX)
    }

    /// Whether there is no value to be received.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Clone, K: Sharing> Receiver<T, K> {
    /// Waits for the next value. The last receiver to get a value gets the value itself, the others clones.
    ///
    /// # Errors
    /// [`RecvError::Lagged`] says how many values this receiver has missed; it goes on with the oldest that is left.
    /// [`RecvError::Closed`] says that no value comes any more.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Result<T, RecvError> {
        let next = &mut self.next;
        let check = |state: &mut State<T, K>| match state.next(next) {
            Ok(value) => Some(Ok(value)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some(Err(RecvError::Closed)),
            Err(TryRecvError::Lagged(count)) => Some(Err(RecvError::Lagged(count))),
        };
        let value = until::<K, _, _>(&self.shared, |state| &mut state.news, check).await?;
        Ok(K::unwrap_or_clone(value))
    }

    /// Takes the next value if it is there.
    ///
    /// # Errors
    /// [`TryRecvError`] says why it is not.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let value = K::with(&self.shared, |state| state.next(&mut self.next))?;
        Ok(K::unwrap_or_clone(value))
    }
}

impl<T, K: Sharing> Drop for Receiver<T, K> {
    fn drop(&mut self) {
        let unwanted = K::with(&self.shared, |state| {
            state.receivers -= 1;
            let seen = self.next.saturating_sub(state.first);
            let seen = usize::try_from(seen).unwrap_or(usize::MAX);
            for entry in state.buffer.iter_mut().skip(seen) {
                entry.unseen -= 1;
            }
            // Those that nobody else has before them come first.
            let unwanted = state.buffer.iter().take_while(|entry| entry.unseen == 0);
            let count = unwanted.count();
            state.first += count as u64;
            state.buffer.drain(..count).collect::<Vec<_>>()
        });
        drop(unwanted);
    }
}

impl<T, K: Sharing> fmt::Debug for Sender<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("receiver_count", &self.receiver_count())
            .finish_non_exhaustive()
    }
}

impl<T, K: Sharing> fmt::Debug for Receiver<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// There is no receiver; gives the value back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel has no receiver")
    }
}

impl<T> std::error::Error for SendError<T> {}

/// Why no value was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// All senders are gone, and all they sent was received.
    Closed,
    /// The receiver was too slow: so many values were dropped before it got them.
    Lagged(u64),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the channel is closed and empty"),
            Self::Lagged(count) => write!(f, "the receiver was too slow and missed {count} values"),
        }
    }
}

impl std::error::Error for RecvError {}

/// Why no value was received without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// The next one was not sent yet.
    Empty,
    /// All senders are gone, and all they sent was received.
    Closed,
    /// The receiver was too slow: so many values were dropped before it got them.
    Lagged(u64),
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the channel is empty"),
            Self::Closed => f.write_str("the channel is closed and empty"),
            Self::Lagged(count) => write!(f, "the receiver was too slow and missed {count} values"),
        }
    }
}

impl std::error::Error for TryRecvError {}
