//! What becomes of failures that no parent hears of.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::exit::Down;

/// What to do when an actor without a parent fails.
///
/// # Examples
/// ```
/// use greenroom::{OnRootFailure, System};
///
/// let system = System::builder().on_root_failure(OnRootFailure::StopSystem).shards(1).start()?;
/// assert_eq!(system.shard_count(), 1);
/// # Ok::<(), greenroom::Error>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum OnRootFailure {
    /// It is counted, and the rest goes on.
    #[default]
    GoOn,
    /// All actors of the system stop, [`System::wait_for_termination`](crate::System::wait_for_termination) returns, and
    /// the failure is in the report of the shutdown.
    StopSystem,
    /// A function is called, on the shard of the actor, and the rest goes on.
    Call(Arc<dyn Fn(&Down) + Send + Sync>),
}

impl OnRootFailure {
    /// Calls a function for each failure, on the shard of the actor. A panic in it goes no further.
    pub fn call(hook: impl Fn(&Down) + Send + Sync + 'static) -> Self {
        Self::Call(Arc::new(hook))
    }
}

impl fmt::Debug for OnRootFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GoOn => "GoOn",
            Self::StopSystem => "StopSystem",
            Self::Call(_) => "Call(..)",
        })
    }
}

/// Says to whoever waits for the end of a system that a failure is to end it.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    state: Mutex<Rung>,
}

#[derive(Debug, Default)]
struct Rung {
    is_rung: bool,
    waiting: Vec<Waker>,
}

impl Alarm {
    pub(crate) fn ring(&self) {
        let mut state = self.lock();
        state.is_rung = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ready once it was rung.
    pub(crate) fn poll_rung(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.is_rung {
            return Poll::Ready(());
        }
        state.waiting.retain(|waker| !waker.will_wake(cx.waker()));
        state.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Rung> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a subscriber of `tracing` that an actor is restarted.
pub(super) fn note_restart(down: &Down, restarts: usize) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "greenroom::actor", actor = down.name, restarts, "restarted: {}", down);
    #[cfg(not(feature = "tracing"))]
    let _ = (down, restarts);
}

/// Tells a subscriber of `tracing` that an actor without a parent has failed.
pub(crate) fn note_root_failure(down: &Down) {
    #[cfg(feature = "tracing")]
    tracing::error!(target: "greenroom::actor", actor = down.name, "failed: {}", down);
    #[cfg(not(feature = "tracing"))]
    let _ = down;
}

/// Tells a subscriber of `tracing` of an error that nobody waited for.
pub(crate) fn note_told_error(actor: &'static str, method: &'static str, text: Option<&str>) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "greenroom::actor", actor, method, "a told message failed: {}", text.unwrap_or("an error that cannot be shown"));
    #[cfg(not(feature = "tracing"))]
    let _ = (actor, method, text);
}
