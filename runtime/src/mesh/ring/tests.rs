//! What one thread can see of a ring.

#![expect(unsafe_code, reason = "pushes records with tables of its own")]

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::Arc,
};

use super::{Consumer, Producer, RecordVtable, RingShared, fits, ring};
use crate::mesh::block::InBlock;

/// What a consumer delivers to in these tests.
type Inbox = RefCell<Vec<Box<dyn std::any::Any>>>;

/// Knows how to deliver a `T` to an `Inbox`.
struct Of<T>(T);

impl<T: Send + 'static> Of<T> {
    const VTABLE: RecordVtable = RecordVtable {
        deliver: |payload, context| {
            // SAFETY: used with records of this type only; each is delivered once.
            let value = unsafe { payload.cast::<T>().read() };
            // SAFETY: `drain` below passes an inbox that outlives the call.
            let inbox = unsafe { &*context.cast::<Inbox>() };
            inbox.borrow_mut().push(Box::new(value));
        },
        discard: |payload| {
            // SAFETY: used with records of this type only; each is discarded once.
            unsafe { payload.cast::<T>().drop_in_place() };
        },
    };
}

fn push<T: Send + 'static>(producer: &mut Producer, value: T) -> bool {
    // SAFETY: the table is the one for `T`.
    unsafe { producer.try_push(&const { Of::<T>::VTABLE }, || value) }
}

fn drain_any(consumer: &mut Consumer, max: usize) -> Vec<Box<dyn std::any::Any>> {
    let inbox = Inbox::default();
    // SAFETY: all records in these rings are pushed with a table that wants an inbox.
    let count = unsafe { consumer.drain(max, ptr::from_ref(&inbox).cast()) }.count;
    let values = inbox.into_inner();
    assert_eq!(values.len(), count);
    values
}

fn drain<T: 'static>(consumer: &mut Consumer, max: usize) -> Vec<T> {
    drain_any(consumer, max)
        .into_iter()
        .map(|value| *value.downcast().expect("the type that was pushed"))
        .collect()
}

#[test]
fn records_are_invisible_until_they_are_published() {
    let (mut producer, mut consumer) = ring(4096);
    assert!(!producer.publish());
    assert!(push(&mut producer, 1_u64));
    assert!(push(&mut producer, 2_u64));
    assert_eq!(producer.unpublished_bytes(), 64);
    assert!(consumer.is_empty());
    assert!(drain::<u64>(&mut consumer, 9).is_empty());
    assert!(producer.publish());
    assert!(!producer.publish());
    assert_eq!(producer.unpublished_bytes(), 0);
    assert!(!consumer.is_empty());
    assert_eq!(drain::<u64>(&mut consumer, 1), [1]);
    assert!(!consumer.is_empty());
    assert_eq!(drain::<u64>(&mut consumer, 9), [2]);
    assert!(consumer.is_empty());
}

#[test]
fn records_of_many_types_keep_their_order() {
    let (mut producer, mut consumer) = ring(4096);
    assert!(push(&mut producer, ()));
    assert!(push(&mut producer, 7_u8));
    assert!(push(&mut producer, String::from("text")));
    assert!(push(&mut producer, [9_u8; 256]));
    assert!(push(&mut producer, u128::MAX));
    assert!(producer.publish());
    let values = drain_any(&mut consumer, 9);
    assert!(values[0].is::<()>());
    assert_eq!(values[1].downcast_ref(), Some(&7_u8));
    assert_eq!(values[2].downcast_ref(), Some(&String::from("text")));
    assert_eq!(values[3].downcast_ref(), Some(&[9_u8; 256]));
    assert_eq!(values[4].downcast_ref(), Some(&u128::MAX));
}

impl<T: Send + 'static> Of<T> {
    const IN_BLOCK: RecordVtable = RecordVtable {
        deliver: |payload, context| {
            // SAFETY: used with records of this type only; each is delivered once.
            let in_block = unsafe { payload.cast::<InBlock<T>>().read() };
            // SAFETY: the ring has the block until the space of its record is given back.
            let value = unsafe { in_block.take() };
            // SAFETY: `drain` below passes an inbox that outlives the call.
            let inbox = unsafe { &*context.cast::<Inbox>() };
            inbox.borrow_mut().push(Box::new(value));
        },
        discard: |payload| {
            // SAFETY: used with records of this type only; each is discarded once.
            let in_block = unsafe { payload.cast::<InBlock<T>>().read() };
            // SAFETY: as above.
            drop(unsafe { in_block.take() });
        },
    };
}

fn push_large<T: Send + 'static>(producer: &mut Producer, value: T) -> bool {
    // SAFETY: the table is the one for a `T` in a block.
    unsafe { producer.try_push_large(&const { Of::<T>::IN_BLOCK }, || value) }
}

#[test]
fn large_records_use_their_blocks_again() {
    let (mut producer, mut consumer) = ring(4096);
    for round in 0..500_u64 {
        for number in 0..8 {
            assert!(push_large(&mut producer, [round * 8 + number; 100]));
        }
        assert!(push(&mut producer, round));
        assert!(producer.publish());
        let values = drain_any(&mut consumer, 99);
        assert_eq!(values.len(), 9);
        for (number, value) in (0..).zip(&values[..8]) {
            assert_eq!(value.downcast_ref(), Some(&[round * 8 + number; 100]));
        }
    }
    assert_eq!(producer.blocks.bytes(), 8 * 1024);
}

#[test]
fn large_records_wait_for_their_blocks_and_hear_of_them() {
    let (mut producer, mut consumer) = ring(4096);
    let sent = (0..99)
        .take_while(|number| push_large(&mut producer, [*number; 1024]))
        .count();
    assert_eq!(sent, 4, "four rings of blocks, of which each takes one");
    assert!(push(&mut producer, 7_u8), "the ring has room");
    assert!(!producer.want_room());
    assert!(producer.publish());
    let inbox = Inbox::default();
    // SAFETY: all records in this ring want an inbox.
    let drained = unsafe { consumer.drain(1, ptr::from_ref(&inbox).cast()) };
    assert!(drained.sender_wants_room);
    assert!(producer.want_room());
    assert!(push_large(&mut producer, [4_u32; 1024]));
    assert!(!push_large(&mut producer, [5_u32; 1024]));
    assert_eq!(drain_any(&mut consumer, 9).len(), 4);
}

#[test]
fn a_panic_in_build_leaves_the_block_idle() {
    let (mut producer, mut consumer) = ring(4096);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the table is the one for this type in a block.
        unsafe {
            producer.try_push_large::<[u8; 999]>(&const { Of::<[u8; 999]>::IN_BLOCK }, || {
                panic!("boom")
            })
        }
    }));
    assert!(panicked.is_err());
    assert!(push_large(&mut producer, [1_u8; 999]));
    assert_eq!(producer.blocks.bytes(), 1024);
    assert!(producer.publish());
    assert_eq!(drain::<[u8; 999]>(&mut consumer, 9), [[1; 999]]);
}

#[test]
fn blocks_in_flight_outlive_both_ends() {
    #[expect(dead_code, reason = "one counts, the other has a size")]
    struct Large(Arc<()>, [u8; 900]);
    let witness = Arc::new(());
    let (mut producer, mut consumer) = ring(4096);
    for _ in 0..4 {
        assert!(push_large(&mut producer, Large(witness.clone(), [0; 900])));
    }
    drop(producer);
    assert_eq!(drain::<Large>(&mut consumer, 2).len(), 2);
    assert_eq!(Arc::strong_count(&witness), 3);
    drop(consumer);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn only_what_fits_fits() {
    #[repr(align(32))]
    struct Strict;
    assert!(fits::<[u8; 256]>());
    assert!(fits::<u128>());
    assert!(!fits::<[u8; 257]>());
    assert!(!fits::<Strict>());
}

#[test]
fn a_full_ring_refuses_without_building() {
    let (mut producer, mut consumer) = ring(4096);
    for index in 0..128_u64 {
        assert!(push(&mut producer, index));
    }
    assert!(!producer.want_room());
    // SAFETY: the table is the one for `u64`.
    let pushed = unsafe {
        producer.try_push::<u64>(&const { Of::<u64>::VTABLE }, || unreachable!("no room"))
    };
    assert!(!pushed);
    assert!(producer.publish());
    assert!(!push(&mut producer, ()));
    assert_eq!(drain::<u64>(&mut consumer, 1), [0]);
    assert!(push(&mut producer, 128_u64));
    assert!(!push(&mut producer, ()));
    assert!(producer.publish());
    assert_eq!(
        drain::<u64>(&mut consumer, 999),
        (1..=128).collect::<Vec<_>>()
    );
}

/// Goes round the ring and over the overflow of the indices with every record size.
#[test]
fn records_survive_the_wrap() {
    let start = usize::MAX - 15 - 4096;
    let shared = Arc::new(RingShared::starting_at(4096, start));
    let mut producer = Producer::new(Arc::clone(&shared));
    let mut consumer = Consumer::new(shared);
    for round in 0..200_u8 {
        assert!(push(&mut producer, [round; 256]));
        assert!(push(&mut producer, u32::from(round)));
        assert!(push(&mut producer, [u64::from(round); 9]));
        assert!(push(&mut producer, ()));
        assert!(producer.publish());
        let values = drain_any(&mut consumer, 99);
        assert_eq!(values.len(), 4);
        assert_eq!(values[0].downcast_ref(), Some(&[round; 256]));
        assert_eq!(values[1].downcast_ref(), Some(&u32::from(round)));
        assert_eq!(values[2].downcast_ref(), Some(&[u64::from(round); 9]));
        assert!(values[3].is::<()>());
    }
    assert!(consumer.head < start);
}

#[test]
fn a_panic_in_build_leaves_the_ring_untouched() {
    let (mut producer, mut consumer) = ring(4096);
    assert!(push(&mut producer, 1_u64));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the table is the one for `u64`.
        unsafe { producer.try_push::<u64>(&const { Of::<u64>::VTABLE }, || panic!("boom")) }
    }));
    assert!(panicked.is_err());
    assert!(push(&mut producer, 2_u64));
    assert!(producer.publish());
    assert_eq!(drain::<u64>(&mut consumer, 9), [1, 2]);
}

#[test]
fn a_panic_in_a_delivery_frees_its_slot() {
    static FRAGILE: RecordVtable = RecordVtable {
        deliver: |_, _| panic!("boom"),
        discard: |_| unreachable!("it is delivered"),
    };
    let (mut producer, mut consumer) = ring(4096);
    for index in 0..127_u64 {
        assert!(push(&mut producer, index));
    }
    // SAFETY: the table does not look at the payload, which needs no drop.
    assert!(unsafe { producer.try_push(&FRAGILE, || 0_u64) });
    assert!(producer.publish());
    assert_eq!(drain::<u64>(&mut consumer, 127).len(), 127);
    let panicked = catch_unwind(AssertUnwindSafe(|| drain::<u64>(&mut consumer, 9)));
    assert!(panicked.is_err());
    assert!(consumer.is_empty());
    assert_eq!(producer.shared.head.load(super::Relaxed), 4096);
}

#[test]
fn what_nobody_consumes_is_dropped_with_the_ring() {
    let witness = Arc::new(());
    let (mut producer, mut consumer) = ring(4096);
    for _ in 0..3 {
        assert!(push(&mut producer, Arc::clone(&witness)));
        assert!(producer.publish());
    }
    assert!(push(&mut producer, Arc::clone(&witness)));
    assert_eq!(drain::<Arc<()>>(&mut consumer, 1).len(), 1);
    drop(consumer);
    assert_eq!(Arc::strong_count(&witness), 4);
    drop(producer);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn the_records_of_a_producer_that_has_gone_are_still_delivered() {
    let (mut producer, mut consumer) = ring(4096);
    assert!(push(&mut producer, 1_u64));
    drop(producer);
    assert_eq!(drain::<u64>(&mut consumer, 9), [1]);
}

#[test]
fn a_panic_in_one_discard_does_not_leak_the_others() {
    struct Bomb(Arc<()>, bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.1, "boom with {} others", Arc::strong_count(&self.0));
        }
    }
    let witness = Arc::new(());
    let (mut producer, consumer) = ring(4096);
    for index in 0..4 {
        assert!(push(&mut producer, Bomb(Arc::clone(&witness), index == 1)));
    }
    drop(producer);
    let blast = catch_unwind(AssertUnwindSafe(|| drop(consumer)));
    assert!(blast.is_err());
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
#[should_panic(expected = "a ring has one producer")]
fn a_second_producer_is_refused() {
    let shared = Arc::new(RingShared::new(4096));
    drop(Producer::new(Arc::clone(&shared)));
    drop(Producer::new(shared));
}

#[test]
#[should_panic(expected = "a ring has one consumer")]
fn a_second_consumer_is_refused() {
    let shared = Arc::new(RingShared::new(4096));
    drop(Consumer::new(Arc::clone(&shared)));
    drop(Consumer::new(shared));
}

#[test]
#[should_panic(expected = "want a power of two")]
fn an_odd_capacity_is_refused() {
    drop(RingShared::new(5000));
}
