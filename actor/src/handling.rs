//! What the code that runs on this thread is handling.
//!
//! While the future of a handler is polled, its thread knows which ask the handler serves. An ask that is made meanwhile
//! inherits what is left of that one's time. Tasks that a handler spawns are polled on their own and inherit nothing.
//!
//! In the other direction the calls that a handler waits for say so, for the search for [`crate::cycle`]s: usually by a number
//! alone; while the handler is asked whom it waits for, with all that is known.

use std::cell::{Cell, RefCell};

use greenroom_runtime::mesh::{AskId, AskNote};
use greenroom_runtime::time::Instant;

use crate::cycle::Wait;
use crate::error::Cycle;

/// What a call that waits is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Wait.
    Usual,
    /// Tell what it waits for.
    Inquiring,
    /// Give up, if it is the one that is meant.
    Breaking,
}

thread_local! {
    /// The ask that the innermost handler on the stack serves.
    static SERVED: Cell<Option<AskNote>> = const { Cell::new(None) };
    /// The last call that had to wait; zero if none did since the handler's poll began.
    static LAST_WAIT: Cell<u64> = const { Cell::new(0) };
    static MODE: Cell<Mode> = const { Cell::new(Mode::Usual) };
    static FOUND: RefCell<Vec<Wait>> = const { RefCell::new(Vec::new()) };
    static BROKEN: Cell<Option<(AskId, Cycle)>> = const { Cell::new(None) };
}

/// Polls a handler that serves this ask.
pub(crate) fn serving<R>(ask: Option<AskNote>, poll: impl FnOnce() -> R) -> R {
    let _until_here = Served {
        outer: SERVED.replace(ask),
    };
    LAST_WAIT.set(0);
    poll()
}

/// The running handler serves several asks, so what it asks is for none of them alone.
pub(crate) fn serve_several() {
    SERVED.set(None);
}

/// When the answer is due that the running handler owes.
#[inline]
pub(crate) fn deadline() -> Option<Instant> {
    SERVED.get().and_then(AskNote::deadline)
}

/// A call waits. Says what it is to do besides.
#[inline]
pub(crate) fn note_wait(wait: AskId) -> Mode {
    LAST_WAIT.set(wait.number());
    MODE.get()
}

/// A call that had to wait in the handler's last poll; zero if none had.
#[inline]
pub(crate) fn last_wait() -> u64 {
    LAST_WAIT.get()
}

/// Polls a handler whose calls are to tell what they wait for; returns what they told.
pub(crate) fn inquiring<R>(poll: impl FnOnce() -> R) -> (R, Vec<Wait>) {
    let polled = in_mode(Mode::Inquiring, poll);
    (polled, FOUND.take())
}

/// A call tells what it waits for.
pub(crate) fn tell(wait: Wait) {
    FOUND.with_borrow_mut(|found| found.push(wait));
}

/// Polls a handler of which one call is to give up.
pub(crate) fn breaking<R>(wait: AskId, cycle: Cycle, poll: impl FnOnce() -> R) -> R {
    BROKEN.set(Some((wait, cycle)));
    let polled = in_mode(Mode::Breaking, poll);
    BROKEN.set(None);
    polled
}

/// The cycle that this wait closes, if it is the one to give up.
pub(crate) fn broken(wait: AskId) -> Option<Cycle> {
    let (meant, cycle) = BROKEN.take()?;
    if meant == wait {
        return Some(cycle);
    }
    BROKEN.set(Some((meant, cycle)));
    None
}

fn in_mode<R>(mode: Mode, poll: impl FnOnce() -> R) -> R {
    let _until_here = Moded {
        outer: MODE.replace(mode),
    };
    poll()
}

/// Puts back what was handled around it.
struct Served {
    outer: Option<AskNote>,
}

impl Drop for Served {
    fn drop(&mut self) {
        SERVED.set(self.outer.take());
    }
}

struct Moded {
    outer: Mode,
}

impl Drop for Moded {
    fn drop(&mut self) {
        MODE.set(self.outer);
    }
}
