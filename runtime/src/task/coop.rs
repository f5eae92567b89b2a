//! Cooperation: a task gives way although everything it awaits is ready.
//!
//! A task holds its shard until something it awaits is pending. One that reads from a socket that is never empty, or a
//! channel whose sender is faster, would hold it for ever. So each activation of a task has a [`Budget`]: an operation
//! that is ready takes a unit, and when none is left, operations answer `Pending` and have the task woken at the end of
//! the turn, when timers, peers and the kernel have been looked at.
//!
//! Operations go through [`poll`], or through [`Budget`] when they have the shard in hand. Nothing is taken for an
//! operation that is pending, so there is nothing to give back.
//!
//! The budget belongs to the shard, since one task runs at a time. Outside of activations (jobs, wakers, destructors) it
//! has no end, and on threads that are no shards there is none.

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll};

use super::ready::ChainBudget;
use crate::shard::context;

/// Ready operations of one activation.
const UNITS_PER_ACTIVATION: u32 = 128;
/// More than any poll can use.
const UNLIMITED: u32 = u32::MAX;

/// What the task that runs may still do before it gives way.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<u32>,
}

impl Budget {
    /// A budget without an end, for when no task runs.
    pub(crate) fn new() -> Self {
        Self {
            left: Cell::new(UNLIMITED),
        }
    }

    /// A task is about to run.
    #[inline]
    pub(crate) fn refill(&self) {
        self.left.set(UNITS_PER_ACTIVATION);
    }

    /// No task runs any more.
    #[inline]
    pub(crate) fn lift(&self) {
        self.left.set(UNLIMITED);
    }

    /// No limit for a while; returns what [`Budget::resume`] takes to go on from there.
    pub(crate) fn suspend(&self) -> u32 {
        self.left.replace(UNLIMITED)
    }

    /// The end of what [`Budget::suspend`] began.
    pub(crate) fn resume(&self, left: u32) {
        self.left.set(left);
    }

    /// Whether operations are to answer `Pending`; see [`crate::shard::Shard::give_way`].
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// What the next task of a chain would run with.
    #[inline]
    pub(crate) fn for_chain(&self) -> ChainBudget {
        if self.is_spent() {
            ChainBudget::Spent
        } else {
            ChainBudget::Left
        }
    }

    /// Takes the unit of an operation that was ready.
    #[inline]
    pub(crate) fn spend(&self) {
        self.left.set(self.left.get().saturating_sub(1));
    }
}

/// Polls an operation at the cost of one unit of the running task's budget if it is ready.
///
/// When the budget is spent, `operation` is not called: the task is woken at the end of the turn and the answer is
/// `Pending`. So whatever the operation does when it is ready must be in there, and what it has before must keep until
/// the next poll.
#[inline]
pub(crate) fn poll<T>(
    cx: &mut Context<'_>,
    operation: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    if !may_proceed(cx) {
        return Poll::Pending;
    }
    let polled = operation(cx);
    if polled.is_ready() {
        context::with(|shard| shard.budget().spend());
    }
    polled
}

/// False if the budget is spent; the task is then woken at the end of the turn.
#[inline]
fn may_proceed(cx: &Context<'_>) -> bool {
    context::with(|shard| {
        let spent = shard.budget().is_spent();
        if spent {
            shard.give_way(cx.waker());
        }
        !spent
    })
    .unwrap_or(true)
}

/// Takes one unit of the task's budget, and gives way when none is left.
///
/// A task may make 128 ready operations of this crate in one activation; after that the next one lets other tasks,
/// timers and I/O go first. Code that computes for long, or awaits only futures of its own, calls this now and then to
/// be as fair.
///
/// # Cancel safety
/// Dropping the future has no effect.
///
/// # Examples
/// ```
/// use greenroom_runtime::task::consume_budget;
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// let sum = runtime.run_on(0, || async {
///     let mut sum = 0_u64;
///     for number in 0..10_000 {
///         sum += number;
///         consume_budget().await;
///     }
///     sum
/// });
/// assert_eq!(sum, 49_995_000);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub async fn consume_budget() {
    std::future::poll_fn(|cx| poll(cx, |_| Poll::Ready(()))).await;
}

/// Whether the next ready operation of the running task may proceed; true where no budget applies.
///
/// # Examples
/// ```
/// use greenroom_runtime::task::{consume_budget, has_budget_remaining};
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// let batch = runtime.run_on(0, || async {
///     let mut batch = 0;
///     while has_budget_remaining() {
///         consume_budget().await;
///         batch += 1;
///     }
///     batch
/// });
/// assert!(batch > 0);
/// assert!(has_budget_remaining(), "this thread is no shard");
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[must_use]
pub fn has_budget_remaining() -> bool {
    context::with(|shard| !shard.budget().is_spent()).unwrap_or(true)
}

/// Lets a future run without a budget: it goes on as long as what it awaits is ready.
///
/// The task's budget is kept for what it does beside the future. What is inside can starve its shard, so it should be
/// known to end soon.
///
/// # Examples
/// ```
/// use greenroom_runtime::task::{consume_budget, has_budget_remaining, unconstrained};
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     unconstrained(async {
///         for _ in 0..1000 {
///             consume_budget().await;
///         }
///     })
///     .await;
///     assert!(has_budget_remaining());
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub async fn unconstrained<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    std::future::poll_fn(|cx| {
        let _lifted = Lifted::new();
        future.as_mut().poll(cx)
    })
    .await
}

/// While this lives, the running task has no budget to keep to.
pub(super) struct Lifted {
    /// `None` on a thread that is no shard.
    left: Option<u32>,
}

impl Lifted {
    pub(super) fn new() -> Self {
        Self {
            left: context::with(|shard| shard.budget().suspend()),
        }
    }
}

impl Drop for Lifted {
    fn drop(&mut self) {
        if let Some(left) = self.left {
            context::with(|shard| shard.budget().resume(left));
        }
    }
}
