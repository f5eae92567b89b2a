//! Running a future on a thread that is no shard.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // ORDERING: Release; pairs with the swap in `block_on`: what the waker did is seen by the next poll.
        if !self.woken.swap(true, Ordering::Release) {
            self.thread.unpark();
        }
    }
}

/// Polls a future, or what becomes one, on the calling thread until it is done.
///
/// The thread is parked in between. No runtime is needed: [`crate::Runtime::block_on`] is the same for who has one at hand.
///
/// # Panics
/// If the calling thread is a shard.
///
/// # Examples
/// ```
/// let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// let task = runtime.handle().spawn_on(0, || async { 6 * 7 });
/// let answer = std::thread::spawn(|| greenroom_runtime::block_on(task)).join().unwrap();
/// assert_eq!(answer.unwrap(), 42);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[track_caller]
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    assert!(
        crate::current_shard().is_none(),
        "`block_on` was called on a shard, which it would block: await the future, or spawn it"
    );
    let unpark = Arc::new(Unpark {
        thread: thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(unpark.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future.into_future());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        // ORDERING: Acquire; pairs with `wake_by_ref`.
        while !unpark.woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}
