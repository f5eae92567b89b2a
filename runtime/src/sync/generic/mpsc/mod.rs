//! A bounded queue of values from many tasks to one.
//!
//! Room is counted in [`Permits`]: one for each value that fits. A sender takes one, which may mean to wait in line, and
//! the receiver gives it back when it takes the value out. So the bound is exact, however many senders there are, and
//! senders get room in the order they came.

mod error;
mod receiver;
mod sender;

use std::collections::VecDeque;
use std::task::Waker;

pub use self::error::{SendError, TryRecvError, TrySendError};
pub use self::receiver::Receiver;
pub use self::sender::{Permit, Reserve, Sender, Sending};
use super::super::permits::Permits;
use super::super::sharing::Sharing;
use super::super::waiters::Waiters;

struct State<T> {
    queue: VecDeque<T>,
    /// Places for values that no value is in and no sender was given. Closed with the channel.
    room: Permits,
    capacity: usize,
    senders: usize,
    has_receiver: bool,
    receiver: Option<Waker>,
    /// Who waits for the channel to be closed.
    closed: Waiters<()>,
}

impl<T> State<T> {
    /// Whether no value can come any more. Places that were given before the channel was closed may still be used.
    fn is_finished(&self) -> bool {
        let may_be_sent =
            self.senders > 0 && (!self.room.is_closed() || self.room.available() < self.capacity);
        self.queue.is_empty() && !may_be_sent
    }

    /// Puts a value into a place that was taken; gives it back if nobody will receive it.
    fn push(&mut self, value: T) -> Result<Option<Waker>, T> {
        if !self.has_receiver {
            return Err(value);
        }
        self.queue.push_back(value);
        Ok(self.receiver.take())
    }

    /// Gives a place back that was taken and not used.
    fn give_back(&mut self) -> Option<Waker> {
        self.room.give(1);
        self.receiver_of_the_end()
    }

    /// The receiver's waker, if it waits for a value that now does not come.
    fn receiver_of_the_end(&mut self) -> Option<Waker> {
        self.is_finished().then(|| self.receiver.take()).flatten()
    }

    fn close(&mut self) {
        self.room.close();
        self.closed.grant_all(());
    }

    fn next_waker(&mut self) -> Option<Waker> {
        self.room.next_waker().or_else(|| self.closed.next_waker())
    }
}

/// Opens a channel that holds up to `capacity` values; zero counts as one.
///
/// Memory is taken as values come, not for the whole capacity.
pub fn channel<T, K: Sharing>(capacity: usize) -> (Sender<T, K>, Receiver<T, K>) {
    let capacity = capacity.max(1);
    let shared = K::share(State {
        queue: VecDeque::new(),
        room: Permits::new(capacity),
        capacity,
        senders: 1,
        has_receiver: true,
        receiver: None,
        closed: Waiters::new(),
    });
    (Sender::new(shared.clone()), Receiver::new(shared))
}
