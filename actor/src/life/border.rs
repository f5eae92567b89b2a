//! The border between the framework and the code of its user: where a panic ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom_runtime::task::discard_payload;

use crate::actor::Actor;
use crate::fate::{self, Fate, PanicReport};
use crate::mailbox::Mailbox;

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
    type Output = Result<F::Output, PanicReport>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let polled = this
            .mailbox
            .while_handling(|| catch_unwind(AssertUnwindSafe(|| this.future.as_mut().poll(cx))));
        let output = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(fate::report(payload)),
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
