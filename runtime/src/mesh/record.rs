//! Typed records: into a ring, out of it, or into the spill queue.

#![expect(
    unsafe_code,
    reason = "reads records back as the type their vtable was made for"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::block::{self, InBlock};
use super::ring::{Consumer, Drained, Producer, RecordVtable, fits};
use crate::shard::{Shard, ShardId};
use crate::task::discard_payload;

/// A value that travels between shards and knows what to do on arrival.
pub(crate) trait Record: Send + 'static {
    /// Runs on the receiving shard. May run user code: no structure of the shard is borrowed.
    fn arrive(self, shard: &Shard, from: ShardId);
}

/// Takes up to `max` records of one peer to where they belong.
pub(crate) fn drain(consumer: &mut Consumer, max: usize, arrival: &Arrival<'_>) -> Drained {
    // SAFETY: every record of these rings is pushed by `push` or `Spilled::retry`, whose vtables want an `Arrival`.
    unsafe { consumer.drain(max, std::ptr::from_ref(arrival).cast()) }
}

/// What the receiving shard passes to its records.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) shard: &'a Shard,
    pub(crate) from: ShardId,
}

/// Writes a record into a ring; false, with nothing built, when it has no room.
#[inline]
pub(crate) fn push<T: Record>(producer: &mut Producer, build: impl FnOnce() -> T) -> bool {
    if const { fits::<T>() } {
        // SAFETY: the vtable is the one made for `T`.
        unsafe { producer.try_push(inline_vtable::<T>(), build) }
    } else if const { block::fits::<T>() } {
        // SAFETY: the vtable is the one made for a `T` in a block, and both its functions take the value out.
        unsafe { producer.try_push_large(large_vtable::<T>(), build) }
    } else {
        // Too large for a block: one allocation, freed on the receiving shard.
        // SAFETY: the vtable is the one made for `Box<T>` with `T` inside.
        unsafe { producer.try_push(boxed_vtable::<T>(), || Box::new(build())) }
    }
}

fn inline_vtable<T: Record>() -> &'static RecordVtable {
    &RecordVtable {
        deliver: deliver_inline::<T>,
        discard: discard::<T>,
    }
}

fn large_vtable<T: Record>() -> &'static RecordVtable {
    &RecordVtable {
        deliver: deliver_large::<T>,
        discard: discard_large::<T>,
    }
}

fn boxed_vtable<T: Record>() -> &'static RecordVtable {
    &RecordVtable {
        deliver: deliver_boxed::<T>,
        discard: discard::<Box<T>>,
    }
}

/// # Safety
/// * `payload` points to an initialised `T` that is given up to this call.
/// * `context` points to an [`Arrival`] that outlives the call.
unsafe fn deliver_inline<T: Record>(payload: *mut u8, context: *const ()) {
    // SAFETY: by our contract the record is a `T` and ours.
    let record = unsafe { payload.cast::<T>().read() };
    // SAFETY: by our contract.
    let arrival = unsafe { &*context.cast::<Arrival<'_>>() };
    arrive(record, arrival);
}

/// # Safety
/// * `payload` points to an initialised `InBlock<T>` that is given up to this call, and its block is alive.
/// * `context` points to an [`Arrival`] that outlives the call.
unsafe fn deliver_large<T: Record>(payload: *mut u8, context: *const ()) {
    // SAFETY: by our contract the record is an `InBlock<T>` and ours.
    let in_block = unsafe { payload.cast::<InBlock<T>>().read() };
    // SAFETY: by our contract; the ring saw what the writer did before it published the record.
    let record = unsafe { in_block.take() };
    // SAFETY: by our contract.
    let arrival = unsafe { &*context.cast::<Arrival<'_>>() };
    arrive(record, arrival);
}

/// # Safety
/// * `payload` points to an initialised `Box<T>` that is given up to this call.
/// * `context` points to an [`Arrival`] that outlives the call.
unsafe fn deliver_boxed<T: Record>(payload: *mut u8, context: *const ()) {
    // SAFETY: by our contract the record is a `Box<T>` and ours.
    let record = unsafe { payload.cast::<Box<T>>().read() };
    // SAFETY: by our contract.
    let arrival = unsafe { &*context.cast::<Arrival<'_>>() };
    arrive(*record, arrival);
}

/// A record's arrival may drop a user's value, which may panic; that must not end the shard.
#[inline]
fn arrive<T: Record>(record: T, arrival: &Arrival<'_>) {
    let Arrival { shard, from } = *arrival;
    shard.contain(|| record.arrive(shard, from));
}

/// # Safety
/// * `payload` points to an initialised `T` that is given up to this call.
unsafe fn discard<T>(payload: *mut u8) {
    // SAFETY: by our contract.
    drop_contained(unsafe { payload.cast::<T>().read() });
}

/// # Safety
/// * `payload` points to an initialised `InBlock<T>` that is given up to this call, and its block is alive.
unsafe fn discard_large<T>(payload: *mut u8) {
    // SAFETY: by our contract.
    let in_block = unsafe { payload.cast::<InBlock<T>>().read() };
    // SAFETY: by our contract.
    drop_contained(unsafe { in_block.take() });
}

fn drop_contained<T>(record: T) {
    // A panic while an unread record is dropped has been printed by the hook; there is no one to tell.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(record))) {
        discard_payload(payload);
    }
}

/// A record that found its ring full and waits on the sender's side.
pub(crate) trait Spilled {
    /// Moves the record into the ring, or gives it back.
    fn retry(self: Box<Self>, producer: &mut Producer) -> Result<(), Box<dyn Spilled>>;
}

impl<T: Record> Spilled for T {
    fn retry(self: Box<Self>, producer: &mut Producer) -> Result<(), Box<dyn Spilled>> {
        let mut record = Some(self);
        // The box travels as it is: no second allocation, and the receiver frees it.
        // SAFETY: the vtable is the one made for `Box<T>`.
        let pushed = unsafe {
            producer.try_push(boxed_vtable::<T>(), || {
                record
                    .take()
                    .expect("a record is built once, when there is room")
            })
        };
        match record {
            Some(record) if !pushed => Err(record),
            _ => Ok(()),
        }
    }
}
