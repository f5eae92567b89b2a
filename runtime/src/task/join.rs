//! Waiting for a task's end, and how it may have ended.

#![expect(unsafe_code, reason = "names the output type of an erased task")]

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use super::abort::AbortHandle;
use super::coop;
use super::id::Id;
use super::origin::Info;
use super::raw::JoinRef;
use super::state::Stage;
use crate::observe::trace::{self, TaskSpan};
use crate::shard::ShardId;

/// An owned permission to wait for a task's output.
///
/// Dropping it detaches the task, which goes on.
///
/// # Cancel safety
/// Awaiting `&mut handle` and dropping that future loses nothing.
///
/// # Shard affinity
/// `!Send`: a task is joined on the shard it runs on.
#[derive(Debug)]
#[must_use = "dropping a join handle detaches the task; call `.detach()` to say so"]
pub struct JoinHandle<T> {
    /// Invariant: `Some` until the handle is dropped; the task was made from a future with output `T`.
    task: Option<JoinRef>,
    output: PhantomData<T>,
}

impl<T: 'static> JoinHandle<T> {
    /// `task` must come from a future whose output is `T`; only `Shard::spawn` calls this.
    pub(crate) fn new(task: JoinRef) -> Self {
        Self {
            task: Some(task),
            output: PhantomData,
        }
    }

    pub(crate) fn info(&self, shard: ShardId) -> Info<'_> {
        self.task().info(shard)
    }

    pub(crate) fn put_span(&self, span: TaskSpan) {
        self.task().put_span(span);
    }

    fn task(&self) -> &JoinRef {
        self.task
            .as_ref()
            .expect("the task is taken out by drop alone")
    }

    /// Lets the task run on by itself.
    pub fn detach(self) {
        drop(self);
    }

    /// Cancels the task at its current await point: its future is dropped, and the handle resolves to a cancelled
    /// [`JoinError`] unless the task had finished before.
    ///
    /// Called from inside the task itself, it takes effect when that poll returns.
    pub fn abort(&self) {
        self.abort_handle().abort();
    }

    /// A handle that can only abort the task, from anywhere.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle::of_task(self.id())
    }

    /// The task's id.
    #[must_use]
    pub fn id(&self) -> Id {
        self.task().unique_id()
    }

    /// The name it was given by [`Builder::name`](super::Builder::name).
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.task().name()
    }

    /// Whether the task has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        !self.task().is_listed()
    }
}

impl<T: 'static> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        coop::poll(cx, |cx| {
            let task = self.task();
            if task.is_listed() {
                task.set_joiner(cx.waker());
                // The waker was cloned, which may be anyone's code, and may have ended the task.
                if task.is_listed() {
                    return Poll::Pending;
                }
            }
            if task.stage() == Stage::Empty {
                return Poll::Ready(Err(JoinError::cancelled()));
            }
            // SAFETY: by the field's invariant the task's output type is `T`.
            let outcome = unsafe { task.take_outcome::<T>() };
            Poll::Ready(outcome.expect("a task that has ended is either empty or finished"))
        })
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.detach();
        }
    }
}

impl<T> Unpin for JoinHandle<T> {}

/// What became of a task, from what its future returned or threw and what its drop threw.
///
/// Nothing that is not part of the outcome escapes from here, however it is dropped.
pub(super) fn settle<T>(
    polled: Result<T, Box<dyn Any + Send>>,
    dropped: Option<Box<dyn Any + Send>>,
) -> Result<T, JoinError> {
    match (polled, dropped) {
        (Ok(output), None) => Ok(output),
        (Ok(output), Some(payload)) => {
            // Who sees a panic is not to have an output as well.
            contain(|| drop(output));
            Err(JoinError::panicked(payload))
        }
        (Err(payload), None) => Err(JoinError::panicked(payload)),
        (Err(payload), Some(another)) => {
            discard_payload(another);
            Err(JoinError::panicked(payload))
        }
    }
}

/// Why a task has no output.
pub struct JoinError {
    cause: Cause,
}

enum Cause {
    Cancelled,
    /// In a mutex that is never contended, so that the error is `Sync`, as most code wants errors to be.
    Panicked(Mutex<Box<dyn Any + Send>>),
}

impl JoinError {
    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> Self {
        trace::panicked(payload.as_ref());
        Self {
            cause: Cause::Panicked(Mutex::new(payload)),
        }
    }

    pub(crate) fn cancelled() -> Self {
        Self {
            cause: Cause::Cancelled,
        }
    }

    /// Whether the task was aborted, or its shard shut down before it finished.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.cause, Cause::Cancelled)
    }

    /// Whether the task panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, Cause::Panicked(_))
    }

    /// The payload of the panic, for `std::panic::resume_unwind`.
    ///
    /// # Errors
    /// Gives the error back when the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        match self.cause {
            Cause::Panicked(payload) => {
                Ok(payload.into_inner().unwrap_or_else(PoisonError::into_inner))
            }
            Cause::Cancelled => Err(self),
        }
    }
}

/// Drops the payload of a panic that nobody takes, whose own drop may panic as well.
pub fn discard_payload(payload: Box<dyn Any + Send>) {
    trace::panicked(payload.as_ref());
    drop_payload(payload);
}

fn drop_payload(mut payload: Box<dyn Any + Send>) {
    const TRIES: usize = 8;
    for _ in 0..TRIES {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(next) => payload = next,
        }
    }
    // Payloads all the way down.
    #[expect(
        clippy::mem_forget,
        reason = "a drop that always panics is not tried for ever"
    )]
    std::mem::forget(payload);
}

/// Runs foreign code on a thread that must go on; the payload of a panic is dropped.
pub(crate) fn contain(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        discard_payload(payload);
    }
}

/// Runs code of a subscriber. Nobody is told of a panic in it: it would be the one that just panicked.
#[cfg(feature = "tracing")]
pub(crate) fn contain_silently(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        drop_payload(payload);
    }
}

/// The text of a panic payload, if it is one of the two types `panic!` makes.
#[must_use]
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is no text")
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Cancelled => f.write_str("the task was cancelled before it finished"),
            Cause::Panicked(payload) => {
                let payload = payload.lock().unwrap_or_else(PoisonError::into_inner);
                write!(f, "the task panicked: {}", panic_text(payload.as_ref()))
            }
        }
    }
}

impl std::error::Error for JoinError {}
