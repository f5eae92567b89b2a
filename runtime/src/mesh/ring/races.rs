//! Both ends of a ring on two threads; every interleaving of them under loom.

#![expect(unsafe_code, reason = "pushes records with tables of its own")]

use std::{cell::RefCell, ptr, sync::Arc};

use super::{CAPACITY_BYTES_MIN, Consumer, Drained, Producer, RecordVtable, RingShared};
use crate::mesh::block::InBlock;
use crate::{
    inject::handshake::model::{MANY, Shard, explore},
    primitives::{
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc, thread,
    },
};

/// Eight units under loom, of which a record takes three: two records leave no room for a third
/// before the end, so it goes behind padding.
const CAPACITY_BYTES: usize = if cfg!(loom) { 128 } else { CAPACITY_BYTES_MIN };
/// What a consumer delivers to.
type Inbox = RefCell<Vec<usize>>;

struct Of<const LEN: usize>;

impl<const LEN: usize> Of<LEN> {
    /// Delivers the first of `LEN` equal numbers.
    const VTABLE: RecordVtable = RecordVtable {
        deliver: |payload, context| {
            // SAFETY: used with records of this type only; each is delivered once.
            let value = unsafe { payload.cast::<[usize; LEN]>().read() };
            // SAFETY: `drain` below passes an inbox that outlives the call.
            let inbox = unsafe { &*context.cast::<Inbox>() };
            assert_eq!(value, [value[0]; LEN]);
            inbox.borrow_mut().push(value[0]);
        },
        discard: |_| {},
    };
}

fn push<const LEN: usize>(producer: &mut Producer, value: usize) -> bool {
    // SAFETY: the table is the one for an array of this length.
    unsafe { producer.try_push(&const { Of::<LEN>::VTABLE }, || [value; LEN]) }
}

fn drain(consumer: &mut Consumer, max: usize, inbox: &Inbox) -> Drained {
    // SAFETY: all records in these rings want an inbox.
    unsafe { consumer.drain(max, ptr::from_ref(inbox).cast()) }
}

/// Pushes records through a ring whose indices start at the given unit, and publishes each; each
/// side waits for the other only by yielding.
fn stream(count: usize, start_units: usize, max: usize) {
    explore(3, move || {
        let shared = Arc::new(RingShared::starting_at(CAPACITY_BYTES, start_units * 16));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut producer = Producer::new(shared);
                for value in 0..count {
                    while !push::<4>(&mut producer, value) {
                        thread::yield_now();
                    }
                    assert!(producer.publish());
                }
            })
        };
        let mut consumer = Consumer::new(shared);
        let inbox = Inbox::default();
        while inbox.borrow().len() < count {
            if drain(&mut consumer, max, &inbox).count == 0 {
                thread::yield_now();
            }
        }
        assert!(consumer.is_empty());
        writer.join().unwrap();
        assert!(inbox.into_inner().into_iter().eq(0..count));
    });
}

#[test]
fn records_pass_one_by_one_over_the_wrap() {
    stream(4 * MANY, 0, 1);
}

#[test]
fn records_pass_in_batches_over_the_wrap() {
    stream(4 * MANY, 0, 9);
    stream(3 * MANY, 5, 99);
}

#[test]
fn indices_overflow() {
    stream(3 * MANY, usize::MAX / 16 - 2, 9);
}

/// More large records than there are blocks: each block passes back and forth, with no atomic of its own.
#[test]
fn blocks_come_back_with_the_space_of_their_records() {
    const COUNT: usize = 3 * MANY;
    type Large = [usize; 64];
    static IN_BLOCK: RecordVtable = RecordVtable {
        deliver: |payload, context| {
            // SAFETY: all records in this ring are of this type; each is delivered once.
            let in_block = unsafe { payload.cast::<InBlock<Large>>().read() };
            // SAFETY: the ring has the block until the space of its record is given back.
            let value = unsafe { in_block.take() };
            // SAFETY: `drain` passes an inbox that outlives the call.
            let inbox = unsafe { &*context.cast::<Inbox>() };
            assert_eq!(value, [value[0]; 64]);
            inbox.borrow_mut().push(value[0]);
        },
        discard: |_| unreachable!("all are delivered"),
    };
    explore(3, || {
        let shared = Arc::new(RingShared::new(CAPACITY_BYTES));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut producer = Producer::new(shared);
                for value in 0..COUNT {
                    // SAFETY: the table is the one for such a value in a block.
                    while !unsafe { producer.try_push_large(&IN_BLOCK, || [value; 64]) } {
                        thread::yield_now();
                    }
                    assert!(producer.publish());
                }
            })
        };
        let mut consumer = Consumer::new(shared);
        let inbox = Inbox::default();
        while inbox.borrow().len() < COUNT {
            if drain(&mut consumer, 1, &inbox).count == 0 {
                thread::yield_now();
            }
        }
        writer.join().unwrap();
        assert!(inbox.into_inner().into_iter().eq(0..COUNT));
    });
}

/// The ring as a lane of the injector: publish, announce, sleep.
#[test]
fn a_published_batch_wakes_the_consumer() {
    const COUNT: usize = 2 * MANY;
    explore(3, || {
        let shard = Arc::new(Shard::new());
        let shared = Arc::new(RingShared::new(CAPACITY_BYTES));
        let writer = {
            let (shard, shared) = (Arc::clone(&shard), Arc::clone(&shared));
            thread::spawn(move || {
                let mut producer = Producer::new(shared);
                for value in 0..COUNT {
                    while !push::<4>(&mut producer, value) {
                        thread::yield_now();
                    }
                    assert!(producer.publish());
                    shard.announce();
                }
            })
        };
        let mut consumer = Consumer::new(shared);
        let inbox = Inbox::default();
        shard.run(0, || {
            if !consumer.is_empty() {
                drain(&mut consumer, usize::MAX, &inbox);
            }
            inbox.borrow().len() == COUNT
        });
        writer.join().unwrap();
        assert!(inbox.into_inner().into_iter().eq(0..COUNT));
    });
}

/// A producer without room sleeps until the consumer tells it that it has given some back. A
/// word that is not passed on leaves it asleep.
#[test]
fn a_producer_that_wants_room_hears_of_it() {
    const COUNT: usize = 4 * MANY;
    // Two records of fifteen units leave no room for one of the largest size.
    const CAPACITY_BYTES: usize = if cfg!(loom) { 512 } else { CAPACITY_BYTES_MIN };
    explore(3, || {
        let shared = Arc::new(RingShared::new(CAPACITY_BYTES));
        let (tell, told) = mpsc::channel();
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut producer = Producer::new(shared);
                for value in 0..COUNT {
                    while !push::<28>(&mut producer, value) {
                        while !producer.want_room() {
                            told.recv().unwrap();
                        }
                    }
                    assert!(producer.publish());
                }
                // What is told from now on finds its listener.
                told
            })
        };
        let mut consumer = Consumer::new(shared);
        let inbox = Inbox::default();
        while inbox.borrow().len() < COUNT {
            let drained = drain(&mut consumer, 1, &inbox);
            if drained.sender_wants_room {
                tell.send(()).unwrap();
            }
            if drained.count == 0 {
                thread::yield_now();
            }
        }
        drop(writer.join().unwrap());
        assert!(inbox.into_inner().into_iter().eq(0..COUNT));
    });
}

#[test]
fn the_last_owner_discards_what_is_left() {
    type Witness = Arc<AtomicUsize>;
    static WITNESS: RecordVtable = RecordVtable {
        deliver: |payload, _| {
            // SAFETY: all records in this ring are witnesses; each is delivered once.
            let witness = unsafe { payload.cast::<Witness>().read() };
            // ORDERING: Relaxed; a count that is read after the threads have joined.
            witness.fetch_add(1, Relaxed);
        },
        discard: |payload| {
            // SAFETY: all records in this ring are witnesses; each is discarded once.
            let witness = unsafe { payload.cast::<Witness>().read() };
            // ORDERING: Relaxed; a count that is read after the threads have joined.
            witness.fetch_add(1, Relaxed);
        },
    };
    explore(3, || {
        let witness = Witness::new(AtomicUsize::new(0));
        let shared = Arc::new(RingShared::new(CAPACITY_BYTES));
        let writer = {
            let (shared, witness) = (Arc::clone(&shared), Arc::clone(&witness));
            thread::spawn(move || {
                let mut producer = Producer::new(shared);
                for _ in 0..2 {
                    let witness = Arc::clone(&witness);
                    // SAFETY: the table is the one for a witness.
                    assert!(unsafe { producer.try_push(&WITNESS, move || witness) });
                    assert!(producer.publish());
                }
            })
        };
        let mut consumer = Consumer::new(shared);
        // SAFETY: a witness asks for no context.
        let drained = unsafe { consumer.drain(1, ptr::null()) };
        assert!(drained.count <= 1);
        // Only now, so that we are the last: loom does not know what `Arc` orders.
        writer.join().unwrap();
        drop(consumer);
        // ORDERING: Relaxed; a count that is read after the threads have joined.
        assert_eq!(witness.load(Relaxed), 2);
    });
}
