//! Hearing of the shutdown.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Phase;
use crate::mesh::team::Team;
use crate::runtime::Handle;

/// Waits until the shutdown of a runtime begins. Made by [`Handle::shutdown_signal`] and [`shutdown_signal`].
///
/// # Cancel safety
/// Dropping it loses nothing: one that is made later resolves as well.
///
/// # Shard affinity
/// None: it may be awaited on any thread.
#[must_use = "a future does nothing unless awaited"]
pub struct ShutdownSignal {
    team: Arc<Team>,
    /// Its place among those that wait.
    place: Option<u64>,
}

impl ShutdownSignal {
    pub(crate) fn new(team: Arc<Team>) -> Self {
        Self { team, place: None }
    }
}

impl Future for ShutdownSignal {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.team.stop().phase() == Phase::Running {
            this.team.stop().listen(&mut this.place, cx.waker())
        } else {
            Poll::Ready(())
        }
    }
}

impl Drop for ShutdownSignal {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.team.stop().forget(place);
        }
    }
}

impl fmt::Debug for ShutdownSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShutdownSignal").finish_non_exhaustive()
    }
}

/// Waits until the shutdown of the current shard's runtime begins.
///
/// # Panics
/// If the calling thread is no shard: use [`Handle::shutdown_signal`] there.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Builder, shutdown::shutdown_signal, spawn};
/// use std::time::Duration;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     spawn(async {
///         shutdown_signal().await;
///         // Time to say goodbye: what the last request needs is still here.
///     })
///     .detach();
/// });
/// let report = runtime.shutdown_within(Duration::from_secs(10));
/// assert_eq!(report.dropped_tasks(), 0);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn shutdown_signal() -> ShutdownSignal {
    match Handle::current() {
        Some(runtime) => runtime.shutdown_signal(),
        None => panic!(
            "`shutdown_signal` was called on a thread that is no shard: use `Handle::shutdown_signal` there"
        ),
    }
}

/// Runs a future until it is done or the shutdown begins; then it is dropped, and `None` returned.
///
/// If both have happened, the shutdown wins.
///
/// # Panics
/// When awaited on a thread that is no shard.
///
/// # Cancel safety
/// As the future's own.
///
/// # Examples
/// ```
/// use greenroom_runtime::{Builder, net::TcpListener, shutdown::until_shutdown, spawn};
/// use std::time::Duration;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let listener = TcpListener::bind("127.0.0.1:0").unwrap();
///     spawn(async move {
///         while let Some(Ok((stream, _peer))) = until_shutdown(listener.accept()).await {
///             drop(stream);
///         }
///     })
///     .detach();
/// });
/// assert_eq!(runtime.shutdown_within(Duration::from_secs(10)).dropped_tasks(), 0);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub async fn until_shutdown<F: Future>(future: F) -> Option<F::Output> {
    let mut signal = shutdown_signal();
    let mut future = pin!(future);
    poll_fn(|cx| match Pin::new(&mut signal).poll(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(cx).map(Some),
    })
    .await
}

/// Whether the shutdown of the current shard's runtime has begun. Cheap enough for a busy loop.
///
/// False on a thread that is no shard.
#[must_use]
pub fn is_shutting_down() -> bool {
    crate::shard::context::with(|shard| shard.team().stop().phase() > Phase::Running) == Some(true)
}
