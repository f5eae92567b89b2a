//! The task cell: allocation, type erasure, and the only code that touches a future behind a pointer.
//!
//! # Life of a cell
//! 1. [`new_task`] allocates it and hands out two [`TaskRef`]s: one for the table, one for the join handle.
//! 2. [`Polling::poll`] runs the future in place. The cell is never moved: that is what makes the pin sound.
//! 3. When the future returns or panics, it is dropped in place and the outcome takes its space.
//! 4. The last of the two owners frees the cell, dropping an output nobody took.
//!
//! All of it happens on the shard's thread: `TaskRef` is `!Send`.

#![expect(unsafe_code, reason = "owns the raw task allocation")]

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use super::id::TaskId;
use super::join::{JoinError, discard_payload};
use super::state::{Release, Stage, State};

/// The untyped front of a cell.
#[repr(C)]
struct Header {
    vtable: &'static VTable,
    id: TaskId,
    state: Cell<State>,
    /// Who awaits the join handle.
    joiner: Cell<Option<Waker>>,
}

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

/// One of the two owning references to a task's cell.
///
/// Invariant: the cell is allocated while this reference's bit of [`State`] is set.
#[derive(Debug)]
pub(crate) struct TaskRef {
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
pub(crate) fn new_task<F>(id: TaskId, future: F) -> (TaskRef, TaskRef)
where
    F: Future + 'static,
    F::Output: 'static,
{
    let cell = Box::new(TaskCell {
        header: Header {
            vtable: vtable_of::<F>(),
            id,
            state: Cell::new(State::new()),
            joiner: Cell::new(None),
        },
        contents: UnsafeCell::new(Contents {
            future: ManuallyDrop::new(future),
        }),
    });
    let header = NonNull::from(Box::leak(cell)).cast::<Header>();
    (TaskRef { header }, TaskRef { header })
}

impl TaskRef {
    fn header(&self) -> &Header {
        // SAFETY: the type's invariant says the cell is allocated, and a header is only reached through `&`.
        unsafe { self.header.as_ref() }
    }

    pub(crate) fn id(&self) -> TaskId {
        self.header().id
    }

    /// A second, non-owning look at the same task for the duration of one poll.
    pub(crate) fn pinned(&self) -> Polling {
        Polling {
            header: self.header,
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.header().state.get().stage
    }

    /// Marks the task as to be cancelled; true if the caller should drop its future now.
    pub(crate) fn request_abort(&self) -> bool {
        let header = self.header();
        let mut state = header.state.get();
        state.abort_requested = true;
        header.state.set(state);
        state.stage == Stage::Live && !state.running
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

    /// The table lets go of a task that has ended, and whoever waits for it is told.
    pub(crate) fn unlist(self) {
        let joiner = self.header().joiner.take();
        self.release(State::unlist);
        if let Some(joiner) = joiner {
            joiner.wake();
        }
    }

    /// The join handle lets go.
    pub(crate) fn detach(self) {
        self.release(State::detach);
    }

    /// True while the table still holds the task.
    pub(crate) fn is_listed(&self) -> bool {
        self.header().state.get().is_listed()
    }

    fn release(self, transition: impl FnOnce(&mut State) -> Release) {
        let mut state = self.header().state.get();
        let release = transition(&mut state);
        self.header().state.set(state);
        if release == Release::Last {
            // An output nobody took is dropped here; if that drop panics, the panic is the output's own affair: the
            // hook has printed it, and there is no one left to hand it to.
            let _whichever: Cleared = self.clear();
            // SAFETY: the last owner is letting go (the transition said so), and `clear` left the cell empty.
            unsafe { (self.header().vtable.free)(self.header) };
        }
    }

    /// Drops the future or the output in place.
    pub(crate) fn clear(&self) -> Cleared {
        // SAFETY: the cell is allocated by the type's invariant; `clear` looks at the stage itself.
        let panic = unsafe { (self.header().vtable.clear)(self.header) };
        match panic {
            None => Cleared::Quietly,
            Some(payload) => {
                discard_payload(payload);
                Cleared::Panicked
            }
        }
    }
}

/// A task that is being polled: valid until the poll has returned and the table's reference is let go of.
///
/// Invariant: made from the table's reference, which is released only after this value's last use, by the loop that
/// holds both.
#[derive(Debug)]
pub(crate) struct Polling {
    header: NonNull<Header>,
}

impl Polling {
    /// Polls the future once; true when the task has ended and must leave the table.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> bool {
        // SAFETY: the type's invariant: the table's reference outlives this value.
        let header = unsafe { self.header.as_ref() };
        let mut state = header.state.get();
        if state.stage != Stage::Live {
            return true;
        }
        state.running = true;
        header.state.set(state);
        // SAFETY: the stage is `Live`, and `running` was false: the loop polls one task at a time and never from
        // inside a poll.
        let ended = unsafe { (header.vtable.poll)(self.header, cx) };
        let mut state = header.state.get();
        state.running = false;
        header.state.set(state);
        if !ended && state.abort_requested {
            // SAFETY: the poll has returned, so nothing refers into the future any more.
            let panic = unsafe { (header.vtable.clear)(self.header) };
            if let Some(payload) = panic {
                discard_payload(payload);
            }
            return true;
        }
        ended
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
    let outcome = match polled {
        Ok(Poll::Pending) => return false,
        Ok(Poll::Ready(output)) => Ok(output),
        Err(payload) => Err(JoinError::panicked(payload)),
    };
    // SAFETY: same cell; the future is still initialised and no longer borrowed.
    let dropped = unsafe { clear::<F>(header) };
    let outcome = match dropped {
        None => outcome,
        Some(payload) => Err(JoinError::panicked(payload)),
    };
    let mut state = cell.header.state.get();
    if state.has_handle() {
        // SAFETY: the cell is empty (`clear` above), and only this thread touches it.
        unsafe { (*cell.contents.get()).outcome = ManuallyDrop::new(outcome) };
        state.stage = Stage::Finished;
        cell.header.state.set(state);
    } else if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(outcome))) {
        // The output of a detached task panicked while it was dropped. The hook has printed it; nobody can take it.
        discard_payload(payload);
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
