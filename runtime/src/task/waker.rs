//! Wakers that own nothing.
//!
//! The data pointer of a waker is a packed [`TaskId`], never dereferenced. `clone` copies it, `drop` does nothing, and
//! `wake` looks the id up: on the task's own shard in the shard's table, elsewhere in the target's wake table, which
//! lives as long as the process. A waker may therefore be used on any thread, at any time, also after its task, its
//! shard or its runtime is gone.

#![expect(unsafe_code, reason = "builds a waker whose data word is an id")]

use std::mem::ManuallyDrop;
use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::id::TaskId;
use crate::shard::context;
use crate::shard::registry;

const _: () = assert!(
    size_of::<*const ()>() == 8,
    "greenroom packs task ids into pointers: it needs a 64-bit target"
);

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, drop_nothing);

/// A waker for the task. Never needs dropping.
pub(crate) fn task_waker(id: TaskId) -> ManuallyDrop<Waker> {
    // SAFETY: the vtable's functions uphold the contract of `RawWaker`: they are thread-safe (they touch a thread-local
    // and process-lifetime atomics only) and treat the data as a number.
    ManuallyDrop::new(unsafe { Waker::from_raw(raw(id)) })
}

/// The task that a waker wakes, if it is one of ours.
pub(crate) fn woken_task(waker: &Waker) -> Option<TaskId> {
    ptr::eq(waker.vtable(), &raw const VTABLE)
        .then(|| TaskId::from_bits(waker.data().addr() as u64))
}

fn raw(id: TaskId) -> RawWaker {
    let word = usize::try_from(id.bits()).expect("the target has 64-bit pointers");
    RawWaker::new(ptr::without_provenance(word), &VTABLE)
}

fn clone(data: *const ()) -> RawWaker {
    RawWaker::new(data, &VTABLE)
}

fn wake(data: *const ()) {
    let id = TaskId::from_bits(data.addr() as u64);
    let here = context::with(|shard| {
        let own = shard.number() == id.shard();
        if own {
            shard.wake_local(id.slot(), id.generation());
        }
        own
    });
    if here != Some(true) {
        registry::wake_remote(id);
    }
}

fn drop_nothing(_: *const ()) {}
