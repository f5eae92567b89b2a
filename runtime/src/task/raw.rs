//! The task cell: allocation, type erasure, and the only code that touches a future behind a pointer.
//!
//! # Life of a cell
//! 1. [`new_task`] allocates it and hands out a [`TaskRef`] for the table and a [`JoinRef`] for the join handle.
//! 2. [`TaskRef::poll`] runs the future in place. The cell is never moved: that is what makes the pin sound.
//! 3. When the future returns or panics, it is dropped in place and the outcome takes its space.
//! 4. The last of the two owners frees the cell, dropping an output nobody took.
//!
//! All of it happens on the shard's thread: both references are `!Send`.

#![expect(unsafe_code, reason = "owns the raw task allocation")]

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use super::id::{Id, TaskId};
use super::join::{JoinError, contain, discard_payload, settle};
use super::origin::{Info, Origin, TaskName};
use super::state::{Release, Stage, State};
use crate::observe::trace::TaskSpan;
use crate::shard::ShardId;

/// The untyped front of a cell.
#[repr(C)]
struct Header {
    vtable: &'static VTable,
    id: TaskId,
    /// What the waker has no room for, see [`Id`].
    epoch: u32,
    state: Cell<State>,
    /// Who awaits the join handle.
    joiner: Cell<Option<Waker>>,
    name: Option<TaskName>,
    place: &'static Location<'static>,
    /// When it was spawned, by the shard's clock.
    born_ns: u64,
    /// Taken out while the task is polled, and for good when it has ended.
    span: Cell<TaskSpan>,
}

impl Header {
    fn unique_id(&self) -> Id {
        Id::from_parts(self.id, self.epoch)
    }

    fn info(&self, shard: ShardId) -> Info<'_> {
        Info {
            id: self.unique_id(),
            name: self.name.as_ref().map(TaskName::as_str),
            shard,
            spawned_at: self.place,
        }
    }
}

const _: () = assert!(size_of::<Header>() == 64 + size_of::<TaskSpan>());

struct VTable {
    /// Polls the future; on its end stores the outcome and returns true.
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> bool,
    /// Drops the future or the outcome, leaving the cell empty. Returns the payload if that drop panicked.
    clear: unsafe fn(NonNull<Header>) -> Option<Box<dyn Any + Send>>,
    /// Moves the outcome to the pointer, an `Option<Result<Output, JoinError>>` of the right type.
    take: unsafe fn(NonNull<Header>, NonNull<()>),
    /// Frees the memory of an empty cell.
    free: unsafe fn(NonNull<Header>),
}

union Contents<F: Future> {
    future: ManuallyDrop<F>,
    outcome: ManuallyDrop<Result<F::Output, JoinError>>,
}

#[repr(C)]
struct TaskCell<F: Future> {
    /// Invariant: first, so that a pointer to the cell is a pointer to its header.
    header: Header,
    /// Invariant: `header.state.stage` says which member is initialised.
    contents: UnsafeCell<Contents<F>>,
}

/// The table's reference to a task. There is one of each task, and it alone leads to the future.
///
/// Invariant: the cell is allocated while this reference's bit of [`State`] is set.
#[derive(Debug)]
pub(crate) struct TaskRef {
    header: NonNull<Header>,
}

/// The join handle's reference to a task. There is at most one of each task, and it alone leads to the outcome.
///
/// Invariant: as of [`TaskRef`].
#[derive(Debug)]
pub(crate) struct JoinRef {
    header: NonNull<Header>,
}

/// How the drop of a task's future or output went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a panic is to be counted"]
pub(crate) enum Cleared {
    Quietly,
    /// It panicked. The payload has been dropped.
    Panicked,
}

/// Allocates a task; the references are for the table and for the join handle.
pub(crate) fn new_task<F>(id: Id, origin: Origin, born_ns: u64, future: F) -> (TaskRef, JoinRef)
where
    F: Future + 'static,
    F::Output: 'static,
{
    // Built where it stays: `Box::new` would build it on the stack, and copy it.
    let cell = Box::write(
        Box::new_uninit(),
        TaskCell {
            header: Header {
                vtable: vtable_of::<F>(),
                id: id.task(),
                epoch: id.epoch(),
                state: Cell::new(State::new()),
                joiner: Cell::new(None),
                name: origin.name,
                place: origin.place,
                born_ns,
                span: Cell::default(),
            },
            contents: UnsafeCell::new(Contents {
                future: ManuallyDrop::new(future),
            }),
        },
    );
    let header = NonNull::from(Box::leak(cell)).cast::<Header>();
    (TaskRef { header }, JoinRef { header })
}

impl TaskRef {
    fn header(&self) -> &Header {
        // SAFETY: the type's invariant says the cell is allocated, and a header is only reached through `&`.
        unsafe { self.header.as_ref() }
    }

    pub(crate) fn id(&self) -> TaskId {
        self.header().id
    }

    pub(crate) fn unique_id(&self) -> Id {
        self.header().unique_id()
    }

    pub(crate) fn info(&self, shard: ShardId) -> Info<'_> {
        self.header().info(shard)
    }

    /// When the task was spawned, by the shard's clock.
    pub(crate) fn born_ns(&self) -> u64 {
        self.header().born_ns
    }

    pub(crate) fn take_span(&self) -> TaskSpan {
        self.header().span.take()
    }

    pub(crate) fn put_span(&self, span: TaskSpan) {
        self.header().span.set(span);
    }

    /// Polls the future once; true when the task has ended and must leave the table.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if self.header().state.get().stage != Stage::Live {
            return true;
        }
        // SAFETY: the stage is `Live`. This is the only reference that leads to a poll, and it is borrowed exclusively,
        // so no other poll of the future is on the stack.
        unsafe { (self.header().vtable.poll)(self.header, cx) }
    }

    /// Drops the future or the output in place.
    pub(crate) fn clear(&mut self) -> Cleared {
        // SAFETY: the cell is allocated by the type's invariant. It is not being polled: a poll borrows this reference
        // exclusively.
        unsafe { clear_quietly(self.header) }
    }

    /// The table lets go of a task that has ended. Returns whom to tell.
    #[must_use = "whoever waits for the end is to be woken"]
    pub(crate) fn unlist(self) -> Option<Waker> {
        let joiner = self.header().joiner.take();
        // SAFETY: the reference is consumed, and not used again.
        unsafe { release(self.header, State::unlist) };
        joiner
    }
}

impl JoinRef {
    fn header(&self) -> &Header {
        // SAFETY: the type's invariant says the cell is allocated, and a header is only reached through `&`.
        unsafe { self.header.as_ref() }
    }

    pub(crate) fn unique_id(&self) -> Id {
        self.header().unique_id()
    }

    pub(crate) fn name(&self) -> Option<&str> {
        Some(self.header().name.as_ref()?.as_str())
    }

    pub(crate) fn info(&self, shard: ShardId) -> Info<'_> {
        self.header().info(shard)
    }

    pub(crate) fn put_span(&self, span: TaskSpan) {
        self.header().span.set(span);
    }

    pub(crate) fn stage(&self) -> Stage {
        self.header().state.get().stage
    }

    /// True while the table still holds the task.
    pub(crate) fn is_listed(&self) -> bool {
        self.header().state.get().is_listed()
    }

    /// Remembers who waits for the end.
    pub(crate) fn set_joiner(&self, waker: &Waker) {
        let header = self.header();
        let joiner = header.joiner.take().filter(|known| known.will_wake(waker));
        header
            .joiner
            .set(Some(joiner.unwrap_or_else(|| waker.clone())));
    }

    /// Takes the outcome of a finished task.
    ///
    /// # Safety
    /// * `T` is the output type of the future the task was made from.
    pub(crate) unsafe fn take_outcome<T>(&self) -> Option<Result<T, JoinError>> {
        if self.stage() != Stage::Finished {
            return None;
        }
        let mut outcome: Option<Result<T, JoinError>> = None;
        // SAFETY: the stage is `Finished`, and `outcome` is an Option of the type our caller vouches for.
        unsafe { (self.header().vtable.take)(self.header, NonNull::from(&mut outcome).cast()) };
        outcome
    }

    /// The join handle lets go.
    pub(crate) fn detach(self) {
        // Dropped here, and not with the cell: it may be anyone's code, and the loop frees cells.
        drop(self.header().joiner.take());
        // SAFETY: the reference is consumed, and not used again.
        unsafe { release(self.header, State::detach) };
    }
}

/// Ends one of the two references, and the cell with the last of them.
///
/// # Safety
/// * `header` is that of the reference whose bit `transition` clears, and that reference is not used again.
unsafe fn release(header: NonNull<Header>, transition: impl FnOnce(&mut State) -> Release) {
    // SAFETY: by our contract the reference exists, so its invariant says that the cell is allocated.
    let shared = unsafe { header.as_ref() };
    let mut state = shared.state.get();
    let release = transition(&mut state);
    shared.state.set(state);
    if release == Release::Last {
        // An output nobody took is dropped here; if that drop panics, the panic is the output's own affair: the hook has
        // printed it, and there is no one left to hand it to.
        // SAFETY: no one but us refers to the cell any more, so it is not being polled.
        let _whichever: Cleared = unsafe { clear_quietly(header) };
        // SAFETY: the last owner is letting go (the transition said so), and the cell was emptied above.
        unsafe { (header.as_ref().vtable.free)(header) };
    }
}

/// Drops the future or the output in place, and the payload of a panic of that drop.
///
/// # Safety
/// * `header` points to an allocated cell that is not being polled.
unsafe fn clear_quietly(header: NonNull<Header>) -> Cleared {
    // SAFETY: by our contract; `clear` looks at the stage itself.
    let panic = unsafe { (header.as_ref().vtable.clear)(header) };
    match panic {
        None => Cleared::Quietly,
        Some(payload) => {
            discard_payload(payload);
            Cleared::Panicked
        }
    }
}

fn vtable_of<F>() -> &'static VTable
where
    F: Future + 'static,
    F::Output: 'static,
{
    &VTable {
        poll: poll::<F>,
        clear: clear::<F>,
        take: take::<F>,
        free: free::<F>,
    }
}

/// # Safety
/// * `header` points to an allocated `TaskCell<F>` whose stage is `Live`, and no poll of it is on the stack.
unsafe fn poll<F: Future + 'static>(header: NonNull<Header>, cx: &mut Context<'_>) -> bool {
    let cell = header.cast::<TaskCell<F>>();
    // SAFETY: by our contract the cell is allocated; only a shared reference is made.
    let cell = unsafe { cell.as_ref() };
    let polled = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: by our contract the future is initialised and nothing else borrows it.
        let future = unsafe { &mut *cell.contents.get().cast::<F>() };
        // SAFETY: the cell is a heap allocation that is never moved, and the future is dropped in place.
        let future = unsafe { Pin::new_unchecked(future) };
        future.poll(cx)
    }));
    let polled = match polled {
        Ok(Poll::Pending) => return false,
        Ok(Poll::Ready(output)) => Ok(output),
        Err(payload) => Err(payload),
    };
    // SAFETY: same cell; the future is still initialised and no longer borrowed.
    let dropped = unsafe { clear::<F>(header) };
    let outcome = settle(polled, dropped);
    let mut state = cell.header.state.get();
    if state.has_handle() {
        // SAFETY: the cell is empty (`clear` above), and only this thread touches it.
        unsafe { (*cell.contents.get()).outcome = ManuallyDrop::new(outcome) };
        state.stage = Stage::Finished;
        cell.header.state.set(state);
    } else {
        // If the output of a detached task panics while it is dropped, the hook prints it; nobody can take it.
        contain(|| drop(outcome));
    }
    true
}

/// # Safety
/// * `header` points to an allocated `TaskCell<F>` that is not being polled.
unsafe fn clear<F: Future + 'static>(header: NonNull<Header>) -> Option<Box<dyn Any + Send>> {
    let cell = header.cast::<TaskCell<F>>();
    // SAFETY: by our contract the cell is allocated; only a shared reference is made.
    let cell = unsafe { cell.as_ref() };
    let mut state = cell.header.state.get();
    let stage = state.stage;
    // Emptied first: the drop below is user code and may come back here through an abort.
    state.stage = Stage::Empty;
    cell.header.state.set(state);
    let contents = cell.contents.get();
    catch_unwind(AssertUnwindSafe(|| match stage {
        // SAFETY: the stage said that the future is initialised; it says `Empty` from now on.
        Stage::Live => unsafe { ManuallyDrop::drop(&mut *contents.cast::<ManuallyDrop<F>>()) },
        Stage::Finished => {
            let outcome = contents.cast::<ManuallyDrop<Result<F::Output, JoinError>>>();
            // SAFETY: the stage said that the outcome is initialised; it says `Empty` from now on.
            unsafe { ManuallyDrop::drop(&mut *outcome) };
        }
        Stage::Empty => {}
    }))
    .err()
}

/// # Safety
/// * `header` points to an allocated `TaskCell<F>` whose stage is `Finished`.
/// * `target` points to an `Option<Result<F::Output, JoinError>>`.
unsafe fn take<F: Future + 'static>(header: NonNull<Header>, target: NonNull<()>) {
    let cell = header.cast::<TaskCell<F>>();
    // SAFETY: by our contract the cell is allocated; only a shared reference is made.
    let cell = unsafe { cell.as_ref() };
    let mut state = cell.header.state.get();
    state.stage = Stage::Empty;
    cell.header.state.set(state);
    // SAFETY: by our contract the outcome was initialised; the stage now says it is gone, so this is the one move.
    let outcome = unsafe {
        cell.contents
            .get()
            .cast::<Result<F::Output, JoinError>>()
            .read()
    };
    // SAFETY: by our contract the target is an Option of exactly this type, owned by the caller.
    unsafe {
        *target
            .cast::<Option<Result<F::Output, JoinError>>>()
            .as_mut() = Some(outcome);
    };
}

/// # Safety
/// * `header` points to an allocated, empty `TaskCell<F>` that no one refers to any more.
unsafe fn free<F: Future + 'static>(header: NonNull<Header>) {
    // SAFETY: allocated by `Box::new` in `new_task` with this very type; by our contract this is the last use.
    drop(unsafe { Box::from_raw(header.cast::<TaskCell<F>>().as_ptr()) });
}
