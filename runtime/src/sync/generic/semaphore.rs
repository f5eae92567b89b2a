//! A number of permits, for which tasks wait in line.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::super::permits::{Permits, Refusal};
use super::super::sharing::Sharing;
use super::super::waiters::{Key, poll_step, wake, wake_all};

/// A number of permits: limits how many tasks do something at a time.
///
/// Permits are given in the order in which they were asked for. A task that wants many is not passed by tasks that want
/// few, so it gets its turn; while it waits, [`Semaphore::try_acquire`] finds no permits either.
///
/// A handle: clone it into each task that uses it.
///
/// # Examples
/// ```
/// use greenroom_runtime::{spawn, sync::Semaphore};
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let uploads = Semaphore::new(2);
///     let tasks: Vec<_> = (0..5)
///         .map(|_| {
///             let uploads = uploads.clone();
///             spawn(async move {
///                 let _permit = uploads.acquire().await.expect("nobody closes it");
///                 // At most two tasks are here.
///             })
///         })
///         .collect();
///     for task in tasks {
///         task.await.unwrap();
///     }
///     assert_eq!(uploads.available_permits(), 2);
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub struct Semaphore<K: Sharing> {
    shared: K::Shared<Permits>,
}

impl<K: Sharing> Semaphore<K> {
    /// A semaphore with this many permits.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self {
            shared: K::share(Permits::new(permits)),
        }
    }

    /// How many permits nobody has, or waits for at the front of the line.
    #[must_use]
    pub fn available_permits(&self) -> usize {
        K::with(&self.shared, |permits| permits.available())
    }

    /// Waits for one permit.
    ///
    /// # Errors
    /// [`AcquireError`] when the semaphore is closed, before or meanwhile.
    ///
    /// # Cancel safety
    /// A permit that was given to a future which is then dropped goes on to the next in line. The place is lost.
    #[must_use = "a future does nothing until it is awaited"]
    pub fn acquire(&self) -> Acquire<K> {
        self.acquire_many(1)
    }

    /// Waits for several permits, which come all at once.
    ///
    /// None are waited for without an end if there never are that many; zero are there at once.
    ///
    /// # Errors
    /// [`AcquireError`] when the semaphore is closed, before or meanwhile.
    ///
    /// # Cancel safety
    /// As that of [`Semaphore::acquire`].
    #[must_use = "a future does nothing until it is awaited"]
    pub fn acquire_many(&self, count: usize) -> Acquire<K> {
        Acquire {
            semaphore: self.clone(),
            count,
            key: None,
        }
    }

    /// Takes one permit if there is one and nobody waits.
    ///
    /// # Errors
    /// [`TryAcquireError`] says why there is none.
    pub fn try_acquire(&self) -> Result<Permit<K>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes several permits if there are as many and nobody waits.
    ///
    /// # Errors
    /// [`TryAcquireError`] says why there are none.
    pub fn try_acquire_many(&self, count: usize) -> Result<Permit<K>, TryAcquireError> {
        match K::with(&self.shared, |permits| permits.try_take(count)) {
            Ok(()) => Ok(self.permit(count)),
            Err(Refusal::Short) => Err(TryAcquireError::NoPermits),
            Err(Refusal::Closed) => Err(TryAcquireError::Closed),
        }
    }

    /// Adds permits, for those who wait first. There are never more than `usize::MAX`.
    pub fn add_permits(&self, count: usize) {
        K::with(&self.shared, |permits| permits.give(count));
        self.wake_granted();
    }

    /// Takes up to `count` of the available permits away for good; returns how many there were.
    pub fn forget_permits(&self, count: usize) -> usize {
        K::with(&self.shared, |permits| permits.forget(count))
    }

    /// Fails all who wait for permits, and all who will. Permits that are out stay valid.
    pub fn close(&self) {
        K::with(&self.shared, Permits::close);
        self.wake_granted();
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        K::with(&self.shared, |permits| permits.is_closed())
    }

    fn permit(&self, count: usize) -> Permit<K> {
        Permit {
            semaphore: self.clone(),
            count,
        }
    }

    fn wake_granted(&self) {
        wake_all::<K, _>(&self.shared, Permits::next_waker);
    }
}

impl<K: Sharing> Clone for Semaphore<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

/// The future of [`Semaphore::acquire`] and [`Semaphore::acquire_many`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Acquire<K: Sharing> {
    semaphore: Semaphore<K>,
    count: usize,
    key: Option<Key>,
}

impl<K: Sharing> Unpin for Acquire<K> {}

impl<K: Sharing> Future for Acquire<K> {
    type Output = Result<Permit<K>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let taken = poll_step(cx, |waker| {
            K::with(&this.semaphore.shared, |permits| {
                permits.poll_take(this.count, &mut this.key, waker)
            })
        });
        taken.map(|taken| match taken {
            Ok(()) => Ok(this.semaphore.permit(this.count)),
            Err(_) => Err(AcquireError),
        })
    }
}

impl<K: Sharing> Drop for Acquire<K> {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let own = K::with(&self.semaphore.shared, |permits| permits.withdraw(key));
        self.semaphore.wake_granted();
        drop(own);
    }
}

/// Permits of a [`Semaphore`]; they go back when this is dropped.
#[must_use = "a permit goes back when it is dropped"]
pub struct Permit<K: Sharing> {
    semaphore: Semaphore<K>,
    count: usize,
}

impl<K: Sharing> Permit<K> {
    /// How many permits this is.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes some of the permits off, to be given back apart; `None` if there are not that many.
    pub fn split(&mut self, count: usize) -> Option<Self> {
        self.count = self.count.checked_sub(count)?;
        Some(self.semaphore.permit(count))
    }

    /// Keeps the permits from going back: the semaphore has that many less.
    pub fn forget(mut self) {
        self.count = 0;
    }
}

impl<K: Sharing> Drop for Permit<K> {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let waker = K::with(&self.semaphore.shared, |permits| {
            permits.give(self.count);
            permits.next_waker()
        });
        if let Some(waker) = waker {
            wake(waker);
            self.semaphore.wake_granted();
        }
    }
}

impl<K: Sharing> fmt::Debug for Semaphore<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available_permits", &self.available_permits())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

impl<K: Sharing> fmt::Debug for Acquire<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl<K: Sharing> fmt::Debug for Permit<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// The semaphore was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquireError;

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore was closed")
    }
}

impl std::error::Error for AcquireError {}

/// Why no permit could be taken without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// There are too few, or others wait already.
    NoPermits,
    /// The semaphore was closed.
    Closed,
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPermits => "the semaphore has too few permits, or others wait for them",
            Self::Closed => "the semaphore was closed",
        })
    }
}

impl std::error::Error for TryAcquireError {}
