//! The border between the framework and the code of its user: where a panic ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom_runtime::task::discard_payload;

use super::summons::Summons;
use crate::actor::Actor;
use crate::fate::{self, Fate, PanicReport};
use crate::mailbox::Mailbox;

/// What ended a piece of the user's code before it was done.
#[derive(Debug)]
pub(super) enum Cause {
    Panicked(PanicReport),
    /// It waited, and was given up. Why is with the bonds of the actor.
    Cut,
}

/// Awaits a piece of the user's code; a panic in it is an error.
pub(super) struct Caught<'a, A: Actor, F> {
    mailbox: &'a Mailbox<A>,
    future: Pin<&'a mut F>,
    // Dropped before the future, which is behind a reference, if this is cancelled while it waits.
    interrupted: Interrupted,
}

impl<'a, A: Actor, F> Caught<'a, A, F> {
    pub(super) fn new(mailbox: &'a Mailbox<A>, future: Pin<&'a mut F>) -> Self {
        Self {
            mailbox,
            future,
            interrupted: Interrupted { armed: true },
        }
    }
}

impl<A: Actor, F: Future> Future for Caught<'_, A, F> {
    type Output = Result<F::Output, Cause>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.mailbox.summonses().has(Summons::Cut) {
            // Armed: what the future holds hears that it was cut off. The caller takes the fate back when it is dropped.
            return Poll::Ready(Err(Cause::Cut));
        }
        this.mailbox.begin_poll(cx.waker());
        let polled = this
            .mailbox
            .while_handling(|| catch_unwind(AssertUnwindSafe(|| this.future.as_mut().poll(cx))));
        let output = match polled {
            Ok(Poll::Pending) => {
                this.mailbox.note_wait(cx);
                return Poll::Pending;
            }
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => {
                this.mailbox.begin_failure();
                Err(Cause::Panicked(fate::report(payload)))
            }
        };
        this.interrupted.armed = false;
        Poll::Ready(output)
    }
}

/// Announces, when the task is dropped in the middle of its work, that what is dropped next was interrupted.
pub(super) struct Interrupted {
    pub(super) armed: bool,
}

impl Drop for Interrupted {
    fn drop(&mut self) {
        if self.armed {
            // `End`, which is dropped last, takes it back.
            fate::set(Some(Fate::Killed));
        }
    }
}

/// Runs code that may run a user's drop; a panic in it goes no further. The panic hook has reported it.
pub(crate) fn contain(code: impl FnOnce()) {
    // Noted for the replies that a panic around this one has yet to reach.
    let unwinding = std::thread::panicking().then(fate::last_panic).flatten();
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        discard_payload(payload);
        fate::note_panic(unwinding);
    }
}
