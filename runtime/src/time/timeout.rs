//! Limiting how long a future may take.

use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use super::{Instant, Sleep, sleep_until};

/// Ends a future that takes longer than the limit, counted from this call.
///
/// The future is polled before the clock is looked at, so a result that is there is never thrown away.
///
/// # Errors
/// [`Elapsed`] when the limit passed first; the future has been dropped then.
///
/// # Panics
/// If the calling thread is no shard.
///
/// # Cancel safety
/// That of the future.
///
/// # Examples
/// ```
/// use greenroom_runtime::time::timeout;
/// use std::time::Duration;
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     assert_eq!(timeout(Duration::from_secs(5), async { 1 }).await, Ok(1));
///     let forever = std::future::pending::<()>();
///     assert!(timeout(Duration::from_millis(2), forever).await.is_err());
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn timeout<F: IntoFuture>(limit: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        limit,
        sleep: sleep_until(Instant::now_of_timers("timeout") + limit),
        future: Box::pin(future.into_future()),
    }
}

/// The future of [`timeout`].
#[must_use = "a timeout does nothing until it is awaited"]
pub struct Timeout<F> {
    limit: Duration,
    sleep: Sleep,
    /// Boxed so that the timeout needs no unsafe pinning; I/O, not this allocation, is what a limit is put on.
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        let limit = self.limit;
        pin!(&mut self.sleep)
            .poll(cx)
            .map(|()| Err(Elapsed { limit }))
    }
}

impl<F> fmt::Debug for Timeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// A future took longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    limit: Duration,
}

impl Elapsed {
    /// The limit that passed.
    #[must_use]
    pub fn limit(self) -> Duration {
        self.limit
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not finished within {:?}", self.limit)
    }
}

impl std::error::Error for Elapsed {}
