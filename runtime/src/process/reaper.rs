//! Children nobody waits for any more: their exit status is fetched all the same, so that the kernel can forget them.
//!
//! The list belongs to the process. It is looked through when a child is added to it, and whenever the process is told
//! that a child has ended, on the thread of the [signals](crate::signal): no thread is there for it, and no runtime needs
//! to be.

use std::process::Child;
use std::sync::{Mutex, PoisonError};

use crate::signal;

static ORPHANS: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Takes over a child. Neither blocks nor fails.
pub(super) fn adopt(mut child: Child) {
    // A pipe that was not taken would let the child wait for a reader or writer that never comes.
    drop((child.stdin.take(), child.stdout.take(), child.stderr.take()));
    if !is_running(&mut child) {
        return;
    }
    // If the signal cannot be had, the next child that is added looks after this one.
    drop(signal::tell_reaper());
    orphans().push(child);
    // Between the look above and the first signal that will be heard it may have ended.
    sweep();
}

/// Waits for those that have ended.
pub(crate) fn sweep() {
    orphans().retain_mut(is_running);
}

/// Whether a child still has to be waited for; asks for its status if it has ended.
fn is_running(child: &mut Child) -> bool {
    // An error says that somebody else has waited for it.
    matches!(child.try_wait(), Ok(None))
}

fn orphans() -> std::sync::MutexGuard<'static, Vec<Child>> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}
