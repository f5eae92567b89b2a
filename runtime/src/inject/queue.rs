//! Values from any thread to one shard: unbounded, first in first out, and closable for good.
//!
//! A producer boxes its value in a node and pushes the node on a stack, with one compare-exchange.
//! The shard takes the whole stack with one swap and turns it round, which gives the order of the
//! pushes. Nobody ever takes a single node, and that is what keeps the structure this small:
//!
//! * A producer never looks into a node that it has not made, so nodes need no reclamation scheme.
//! * A push that finds the head it has read, though the stack was emptied and an equal address
//!   pushed meanwhile (ABA), is right all the same: it asks only that its `next` is the head.
//!
//! # The life of a node
//!
//! Made by `push`, where it belongs to the producer, who alone sees it. The successful
//! compare-exchange gives it to the stack; from there on nobody may touch it until a swap by
//! `take_all` or `close` takes it off, together with all under it. Then it belongs to the [`Drain`],
//! which frees it when it hands out the value, or when the `Drain` is dropped. A queue that is
//! dropped does the same with what is left. So each value comes out once, or is dropped once, or
//! goes back to its producer: `close` puts a mark in place of the stack in the same swap that takes
//! the rest, and a push that finds the mark returns its value. There is no moment in which a value
//! could slip in behind the last look.

#![expect(
    unsafe_code,
    reason = "owns nodes through raw pointers, from push to drain"
)]

use std::{fmt, ptr};

use crate::primitives::{
    CacheAligned, UnsafeCell,
    atomic::{
        AtomicPtr,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// The lane of one shard for values of type `T`.
///
/// `T: Send` stands on the type, because the pointers below would let the queue cross threads
/// whatever it carries.
pub(crate) struct Queue<T: Send> {
    /// Invariant: null, the closed mark, or the newest node of a null-terminated list of nodes from
    /// `Box::into_raw` that belong to this queue.
    head: CacheAligned<AtomicPtr<Node<T>>>,
}

struct Node<T> {
    /// The node pushed before this one. A cell, so that loom sees both sides touch it.
    next: UnsafeCell<*mut Node<T>>,
    value: T,
}

impl<T> Node<T> {
    /// The mark of a closed queue: never the address of a node, as a node is aligned for pointers.
    fn closed() -> *mut Self {
        const { assert!(align_of::<Self>() > 1) };
        ptr::without_provenance_mut(1)
    }
}

impl<T: Send> Queue<T> {
    /// Makes an empty, open queue.
    pub(crate) fn new() -> Self {
        Self {
            head: CacheAligned::new(AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Adds a value, or gives it back if the queue is closed.
    ///
    /// On success the caller announces it to the shard.
    #[must_use = "a value that comes back was not delivered"]
    pub(crate) fn push(&self, value: T) -> Result<(), T> {
        let node = Box::into_raw(Box::new(Node {
            next: UnsafeCell::new(ptr::null_mut()),
            value,
        }));
        // ORDERING: Relaxed. The pointer is compared and stored, never followed.
        let mut head = self.head.load(Relaxed);
        loop {
            if head == Node::closed() {
                // SAFETY: `node` is from `Box::into_raw` above, and no compare-exchange has given
                // it to the stack, so it is still this call's alone.
                let node = unsafe { Box::from_raw(node) };
                return Err(node.value);
            }
            // SAFETY: `node` points to a live node that only this call knows (as above).
            let next = unsafe { &(*node).next };
            next.with_mut(|next| {
                // SAFETY: the pointer is to the node's own field, and nobody else knows the node.
                unsafe { *next = head };
            });
            // ORDERING: Release on success, pairs with the acquire swap in `take_list`: who takes
            // the stack sees the nodes as they were written. It pairs for the nodes below too, as
            // each push continues the release sequence of those before it. Relaxed on failure, for
            // the reason given at the load.
            match self
                .head
                .compare_exchange_weak(head, node, Release, Relaxed)
            {
                Ok(_) => return Ok(()),
                Err(now) => head = now,
            }
        }
    }

    /// Takes all values, in the order in which they were pushed. For the shard.
    pub(crate) fn take_all(&self) -> Drain<T> {
        // ORDERING: Relaxed. A look that saves the swap when there is nothing, or when the queue is
        // closed and the mark must stay. It cannot miss a value whose announcement the shard has
        // taken: the push happened before that. One that it does miss will be announced.
        let head = self.head.load(Relaxed);
        if head.is_null() || head == Node::closed() {
            return Drain::empty();
        }
        self.take_list(ptr::null_mut())
    }

    /// True if there was nothing to take. A hint for other threads; for the shard, as `take_all`.
    pub(crate) fn is_empty(&self) -> bool {
        // ORDERING: Relaxed, for the reason given in `take_all`.
        let head = self.head.load(Relaxed);
        head.is_null() || head == Node::closed()
    }

    /// Closes the queue and takes what is left in it; later pushes get their value back.
    pub(crate) fn close(&self) -> Drain<T> {
        self.take_list(Node::closed())
    }

    /// Opens a closed queue again, empty, for a later shard in the same memory.
    pub(crate) fn reopen(&self) {
        // ORDERING: Relaxed. The mark and null carry no data; producers learn of the new shard by
        // other means before they expect a push to succeed.
        let reopened =
            self.head
                .compare_exchange(Node::closed(), ptr::null_mut(), Relaxed, Relaxed);
        debug_assert!(reopened.is_ok(), "reopened a queue that was not closed");
    }

    /// Replaces the stack by `mark`, which is null or the closed mark, and owns what was there.
    fn take_list(&self, mark: *mut Node<T>) -> Drain<T> {
        // ORDERING: Acquire; pairs with the release in `push`. No release is needed: producers
        // follow nothing that this writes.
        let newest = self.head.swap(mark, Acquire);
        if newest == Node::closed() {
            return Drain::empty();
        }
        // SAFETY: by the field's invariant this is a list of the queue's own nodes, its links
        // visible by the acquire above, and the swap has made it ours: no one else can reach it.
        unsafe { Drain::from_newest(newest) }
    }
}

impl<T: Send> Drop for Queue<T> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl<T: Send> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("is_empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}

/// The values of a queue, oldest first; what is not taken is dropped with it.
#[must_use = "dropping it drops the values"]
pub(crate) struct Drain<T> {
    /// Invariant: null, or the oldest node of a null-terminated list of nodes from `Box::into_raw`
    /// that this value owns, each pointing to the next younger one.
    oldest: *mut Node<T>,
}

impl<T> Drain<T> {
    pub(crate) const fn empty() -> Self {
        Self {
            oldest: ptr::null_mut(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.oldest.is_null()
    }

    /// Turns a stack into a drain, by reversing its links.
    ///
    /// # Safety
    ///
    /// * `newest` is null or the first of a null-terminated list of nodes from `Box::into_raw`.
    /// * The caller owns all of them, and everything written to them happened before.
    unsafe fn from_newest(mut newest: *mut Node<T>) -> Self {
        let mut drain = Self::empty();
        while !newest.is_null() {
            // SAFETY: a node of the list, which the caller owns: live, and nobody else has it.
            let next = unsafe { &(*newest).next };
            let younger = drain.oldest;
            drain.oldest = newest;
            newest = next.with_mut(|next| {
                // SAFETY: the pointer is to the field of a node that is ours alone.
                unsafe { ptr::replace(next, younger) }
            });
        }
        drain
    }
}

impl<T> Iterator for Drain<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.oldest.is_null() {
            return None;
        }
        // SAFETY: by the field's invariant a node from `Box::into_raw` that we own; the field moves
        // on below, before anything can panic, so the node is freed once.
        let node = unsafe { Box::from_raw(self.oldest) };
        self.oldest = node.next.with(|next| {
            // SAFETY: the pointer is to the field of the box that we hold.
            unsafe { *next }
        });
        Some(node.value)
    }
}

impl<T> Drop for Drain<T> {
    fn drop(&mut self) {
        /// Goes on with the rest if dropping one value panics.
        struct Rest<'a, T>(&'a mut Drain<T>);
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                self.0.for_each(drop);
            }
        }
        let rest = Rest(self);
        rest.0.for_each(drop);
    }
}

impl<T> fmt::Debug for Drain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain")
            .field("is_empty", &self.oldest.is_null())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::Arc,
    };

    use super::Queue;

    #[test]
    fn values_come_out_in_the_order_of_their_pushes() {
        let queue = Queue::new();
        assert!(queue.is_empty());
        for value in 0..3 {
            queue.push(value).unwrap();
        }
        assert!(!queue.is_empty());
        assert_eq!(queue.take_all().collect::<Vec<_>>(), [0, 1, 2]);
        assert!(queue.is_empty());
        assert_eq!(queue.take_all().next(), None);
    }

    #[test]
    fn a_closed_queue_returns_the_rest_once_and_refuses_more() {
        let queue = Queue::new();
        queue.push("left").unwrap();
        assert_eq!(queue.close().collect::<Vec<_>>(), ["left"]);
        assert_eq!(queue.push("late"), Err("late"));
        assert!(queue.is_empty());
        assert_eq!(queue.take_all().count(), 0);
        assert_eq!(queue.close().count(), 0);
        assert_eq!(queue.push("later"), Err("later"));
        queue.reopen();
        queue.push("again").unwrap();
        assert_eq!(queue.take_all().collect::<Vec<_>>(), ["again"]);
    }

    #[test]
    fn values_that_nobody_takes_are_dropped_once() {
        let witness = Arc::new(());
        let queue = Queue::new();
        for _ in 0..4 {
            queue.push(Arc::clone(&witness)).unwrap();
        }
        let mut drain = queue.take_all();
        drop(drain.next());
        assert_eq!(Arc::strong_count(&witness), 4);
        drop(drain);
        assert_eq!(Arc::strong_count(&witness), 1);
        queue.push(Arc::clone(&witness)).unwrap();
        drop(queue);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn a_panic_in_one_drop_does_not_leak_the_others() {
        struct Bomb(Arc<()>, bool);
        impl Drop for Bomb {
            fn drop(&mut self) {
                assert!(!self.1, "boom with {} others", Arc::strong_count(&self.0));
            }
        }
        let witness = Arc::new(());
        let queue = Queue::new();
        for index in 0..4 {
            assert!(queue.push(Bomb(Arc::clone(&witness), index == 1)).is_ok());
        }
        let blast = catch_unwind(AssertUnwindSafe(|| drop(queue.take_all())));
        assert!(blast.is_err());
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}

#[cfg(test)]
mod races {
    use super::Queue;
    use crate::{
        inject::handshake::model::{MANY, Shard, explore, preemptions},
        primitives::{Arc, thread},
    };

    /// Each producer pushes its values and announces every one; the shard gets all, in order.
    fn producers(count: usize, values_each: usize) {
        explore(preemptions(count), move || {
            let shared = Arc::new((Shard::new(), Queue::new()));
            let threads: Vec<_> = (0..count)
                .map(|producer| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        for value in 0..values_each {
                            shared.1.push((producer, Box::new(value))).unwrap();
                            shared.0.announce();
                        }
                    })
                })
                .collect();
            let mut next = vec![0; count];
            shared.0.run(0, || {
                for (producer, value) in shared.1.take_all() {
                    assert_eq!(*value, next[producer]);
                    next[producer] += 1;
                }
                next.iter().all(|next| *next == values_each)
            });
            assert!(shared.1.close().next().is_none());
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }

    #[test]
    fn one_producer_is_heard() {
        producers(1, 3 * MANY);
    }

    #[test]
    fn two_producers_are_heard() {
        producers(2, MANY);
        producers(2, 2 * MANY);
    }

    #[test]
    fn three_producers_are_heard() {
        producers(3, MANY);
    }

    #[test]
    fn a_push_against_the_closing_goes_through_or_comes_back() {
        explore(3, || {
            let queue = Arc::new(Queue::new());
            let threads: Vec<_> = (0..2)
                .map(|producer| {
                    let queue = Arc::clone(&queue);
                    thread::spawn(move || queue.push(producer).is_ok())
                })
                .collect();
            let mut got: Vec<_> = queue.take_all().collect();
            got.extend(queue.close());
            assert!(queue.take_all().next().is_none());
            for (producer, thread) in threads.into_iter().enumerate() {
                let accepted = thread.join().unwrap();
                assert_eq!(
                    got.iter().filter(|value| **value == producer).count(),
                    usize::from(accepted)
                );
            }
            assert!(queue.is_empty());
        });
    }

    #[test]
    fn a_push_against_a_reopening_is_kept_or_comes_back() {
        explore(3, || {
            let queue = Arc::new(Queue::new());
            assert!(queue.close().next().is_none());
            let late = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.push(7).is_ok())
            };
            queue.reopen();
            let mut got: Vec<_> = queue.take_all().collect();
            let accepted = late.join().unwrap();
            got.extend(queue.take_all());
            assert_eq!(got.len(), usize::from(accepted));
        });
    }
}
