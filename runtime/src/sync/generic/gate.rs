//! Waiting until everyone has left.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::super::sharing::Sharing;
use super::super::waiters::{Until, Waiters, until, wake_all};

/// Counts who is inside, and can be closed: then nobody enters, and one can wait until all have left.
///
/// For what must not go away while somebody uses it: every user enters, and the end is `gate.close().await`.
///
/// A handle: clone it into each task that uses it.
///
/// # Examples
/// ```
/// use greenroom_runtime::{spawn, sync::Gate, yield_now};
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let gate = Gate::new();
///     let entered = gate.enter().expect("it is open");
///     spawn(async move {
///         let _inside = entered;
///         yield_now().await;
///     })
///     .detach();
///     gate.close().await;
///     assert_eq!(gate.count(), 0);
///     assert!(gate.enter().is_err());
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub struct Gate<K: Sharing> {
    shared: K::Shared<State>,
}

struct State {
    inside: usize,
    is_closed: bool,
    closers: Waiters<()>,
}

impl<K: Sharing> Gate<K> {
    /// An open gate with nobody inside.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shared: K::share(State {
                inside: 0,
                is_closed: false,
                closers: Waiters::new(),
            }),
        }
    }

    /// Enters, until the returned value is dropped.
    ///
    /// # Errors
    /// [`GateClosed`] once the gate was closed.
    pub fn enter(&self) -> Result<Entered<K>, GateClosed> {
        K::with(&self.shared, |state| {
            if state.is_closed {
                return Err(GateClosed);
            }
            state.inside += 1;
            Ok(())
        })?;
        Ok(Entered { gate: self.clone() })
    }

    /// Closes the gate, within this call; the future resolves when all have left.
    ///
    /// Awaited by somebody who is inside, it never resolves. It may be called any number of times.
    ///
    /// # Cancel safety
    /// When the future is dropped the gate stays closed.
    pub fn close(&self) -> AllLeft<K> {
        K::with(&self.shared, |state| state.is_closed = true);
        AllLeft {
            wait: until(
                &self.shared,
                |state| &mut state.closers,
                |state| (state.inside == 0).then_some(()),
            ),
        }
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        K::with(&self.shared, |state| state.is_closed)
    }

    /// How many are inside.
    #[must_use]
    pub fn count(&self) -> usize {
        K::with(&self.shared, |state| state.inside)
    }
}

impl<K: Sharing> Default for Gate<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Sharing> Clone for Gate<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

/// Somebody is inside of a [`Gate`] while this lives.
#[must_use = "whoever drops it leaves"]
pub struct Entered<K: Sharing> {
    gate: Gate<K>,
}

impl<K: Sharing> Drop for Entered<K> {
    fn drop(&mut self) {
        let is_last = K::with(&self.gate.shared, |state| {
            state.inside -= 1;
            let is_last = state.inside == 0;
            if is_last {
                state.closers.grant_all(());
            }
            is_last
        });
        if is_last {
            wake_all::<K, _>(&self.gate.shared, |state| state.closers.next_waker());
        }
    }
}

/// The future of [`Gate::close`].
#[must_use = "the gate is closed, but not everyone may have left"]
pub struct AllLeft<K: Sharing> {
    wait: Until<K, State, IsEmpty>,
}

type IsEmpty = fn(&mut State) -> Option<()>;

impl<K: Sharing> Future for AllLeft<K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.wait).poll(cx)
    }
}

impl<K: Sharing> fmt::Debug for Gate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("count", &self.count())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

impl<K: Sharing> fmt::Debug for Entered<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}

impl<K: Sharing> fmt::Debug for AllLeft<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllLeft").finish_non_exhaustive()
    }
}

/// The gate was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateClosed;

impl fmt::Display for GateClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the gate is closed")
    }
}

impl std::error::Error for GateClosed {}
