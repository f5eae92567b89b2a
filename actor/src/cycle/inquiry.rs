//! Finds out whether a handler waits for one call and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use super::Wait;
use crate::handling;

/// Passes wakes on, and is counted by whoever keeps it.
struct Counted {
    inner: Waker,
    woken: AtomicBool,
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // ORDERING: Relaxed; read by `inquire` for wakes of its own poll, which happen on its thread. One from another
        // thread that it does not see comes through a clone, which is counted.
        self.woken.store(true, Ordering::Relaxed);
        self.inner.wake_by_ref();
    }
}

/// Polls a handler with a waker of its own. If it then waits for one call and nothing else, that is returned too: whatever
/// else might let it go on would have kept a clone of the waker, as every future must that is to be polled again.
pub(crate) fn inquire<T>(
    cx: &Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> T,
    is_pending: impl FnOnce(&T) -> bool,
) -> (T, Option<Wait>) {
    let counted = Arc::new(Counted {
        inner: cx.waker().clone(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(counted.clone());
    let (polled, mut waits) = handling::inquiring(|| poll(&mut Context::from_waker(&waker)));
    drop(waker);
    if !is_pending(&polled) || waits.len() != 1 {
        return (polled, None);
    }
    let wait = waits.pop();
    let known = wait.as_ref().map_or(0, |wait| wait.wakers);
    // ORDERING: Relaxed; pairs with `wake_by_ref` on this thread.
    let is_sole =
        Arc::strong_count(&counted) == 1 + known && !counted.woken.load(Ordering::Relaxed);
    (polled, wait.filter(|_| is_sole))
}
