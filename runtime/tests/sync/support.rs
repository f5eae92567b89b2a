//! Futures polled by hand, with wakers that count.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future with a waker of its own.
pub(crate) struct Probe<F> {
    future: Pin<Box<F>>,
    count: Arc<Count>,
    seen: usize,
}

impl<F: Future> Probe<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            future: Box::pin(future),
            count: Arc::default(),
            seen: 0,
        }
    }

    /// One that was polled once, and waits.
    #[track_caller]
    pub(crate) fn waiting(future: F) -> Self {
        let mut probe = Self::new(future);
        assert!(probe.poll().is_pending(), "it was to wait");
        probe
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(self.count.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Whether it was woken since this was last asked.
    pub(crate) fn is_woken(&mut self) -> bool {
        let count = self.count.0.load(Ordering::Relaxed);
        std::mem::replace(&mut self.seen, count) != count
    }

    /// What it returns, now that it was woken.
    #[track_caller]
    pub(crate) fn woken(&mut self) -> F::Output {
        assert!(self.is_woken(), "it was not woken");
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it was woken for nothing"),
        }
    }

    #[track_caller]
    pub(crate) fn still_waits(&mut self) {
        assert!(!self.is_woken(), "it was woken");
        assert!(self.poll().is_pending(), "it was ready, and nobody woke it");
    }
}

/// What a future returns that is ready at once.
#[track_caller]
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    match Probe::new(future).poll() {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is not ready"),
    }
}

/// A waker that runs a closure: foreign code in the middle of a wake.
pub(crate) fn waker_that(act: impl Fn() + Send + Sync + 'static) -> Waker {
    struct Act<F>(F);
    impl<F: Fn() + Send + Sync + 'static> Wake for Act<F> {
        fn wake(self: Arc<Self>) {
            (self.0)();
        }
    }
    Waker::from(Arc::new(Act(act)))
}

/// Makes each generic function a test, once for holders on one shard and once for any threads.
macro_rules! for_both_kinds {
    ($($name:ident)*) => {
        mod same_shard {
            $(#[test] fn $name() { super::$name::<greenroom_runtime::sync::SameShard>(); })*
        }
        mod any_thread {
            $(#[test] fn $name() { super::$name::<greenroom_runtime::sync::AnyThread>(); })*
        }
    };
}
