//! Finds out which calls a handler waits for, and whether it is one call and nothing else.

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

/// What a handler waits for.
#[derive(Default)]
pub(crate) struct Inquiry {
    pub(crate) waits: Vec<Wait>,
    is_sole: bool,
}

impl Inquiry {
    /// The call that it waits for, if there is one and nothing else.
    pub(crate) fn sole(&self) -> Option<&Wait> {
        self.waits.first().filter(|_| self.is_sole)
    }
}

/// Polls a handler with a waker of its own, and finds out what it waits for, if it does. That it is one call and nothing else
/// is known from the waker: whatever else might let it go on would have kept a clone, as every future must that is to be
/// polled again.
pub(crate) fn inquire<T>(
    cx: &Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> T,
    is_pending: impl FnOnce(&T) -> bool,
) -> (T, Inquiry) {
    let counted = Arc::new(Counted {
        inner: cx.waker().clone(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(counted.clone());
    let (polled, waits) = handling::inquiring(|| poll(&mut Context::from_waker(&waker)));
    drop(waker);
    if !is_pending(&polled) {
        return (polled, Inquiry::default());
    }
    // Who cannot be asked in turn is on no path that a probe could take.
    let known = match &*waits {
        [wait] if wait.forward.is_some() => Some(wait.wakers),
        _ => None,
    };
    let is_sole = known.is_some_and(|known| {
        // ORDERING: Relaxed; pairs with `wake_by_ref` on this thread.
        Arc::strong_count(&counted) == 1 + known && !counted.woken.load(Ordering::Relaxed)
    });
    (polled, Inquiry { waits, is_sole })
}
