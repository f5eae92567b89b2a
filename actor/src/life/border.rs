//! The border between the framework and the code of its user: where a panic ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom_runtime::mesh::AskNote;
use greenroom_runtime::task::discard_payload;

use super::summons::Summons;
use crate::actor::Actor;
use crate::cycle;
use crate::fate::{self, Fate, PanicReport};
use crate::handling;
use crate::mailbox::Mailbox;
use crate::observe::Handling;
use crate::reply::Carries;

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
    served: Serving,
    // Dropped before the future, which is behind a reference, if this is cancelled while it waits.
    interrupted: Interrupted,
    /// Whether it was pending, and so is polled in another activation than it began in.
    has_waited: bool,
}

impl<'a, A: Actor, F> Caught<'a, A, F> {
    pub(super) fn new(mailbox: &'a Mailbox<A>, future: Pin<&'a mut F>) -> Self {
        Self::serving(Serving::default(), mailbox, future)
    }

    /// Of a handler, with the ask it serves.
    pub(super) fn serving(
        served: Serving,
        mailbox: &'a Mailbox<A>,
        future: Pin<&'a mut F>,
    ) -> Self {
        Self {
            mailbox,
            future,
            served,
            interrupted: Interrupted { armed: true },
            has_waited: false,
        }
    }

    pub(super) fn has_waited(&self) -> bool {
        self.has_waited
    }
}

impl<A: Actor, F: Future> Future for Caught<'_, A, F> {
    type Output = Result<F::Output, Cause>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.mailbox.summonses().has(Summons::Cut) {
            this.mailbox.waits_on(0);
            // Armed: what the future holds hears that it was cut off. The caller takes the fate back when it is dropped.
            return Poll::Ready(Err(Cause::Cut));
        }
        this.mailbox.ripen_errands();
        let polled = if this.mailbox.is_asked() {
            this.inquire(cx)
        } else {
            this.run(cx)
        };
        let output = match polled {
            Ok(Poll::Pending) => {
                this.has_waited = true;
                this.mailbox.note_wait();
                this.mailbox.waits_on(handling::last_wait());
                return Poll::Pending;
            }
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => {
                this.mailbox.begin_failure();
                Err(Cause::Panicked(fate::report(payload)))
            }
        };
        this.mailbox.waits_on(0);
        this.interrupted.armed = false;
        Poll::Ready(output)
    }
}

/// How a poll of the user's code ended.
type Polled<T> = std::thread::Result<Poll<T>>;

impl<A: Actor, F: Future> Caught<'_, A, F> {
    #[inline]
    fn run(&mut self, cx: &mut Context<'_>) -> Polled<F::Output> {
        let Self {
            mailbox,
            future,
            served,
            ..
        } = self;
        let ask = served.ask.filter(|_| !mailbox.has_beside());
        let poll = || catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        mailbox.while_handling(|| served.handling.during(|| handling::serving(ask, poll)))
    }

    /// Runs, and finds out whether it then waits for one call and nothing else; a call that closes a cycle gives up.
    #[cold]
    fn inquire(&mut self, cx: &mut Context<'_>) -> Polled<F::Output> {
        let (polled, inquiry) = cycle::inquire(
            cx,
            |cx| self.run(cx),
            |polled| matches!(polled, Ok(Poll::Pending)),
        );
        let holds_up = self.served.ask.filter(|_| !self.served.is_deferred);
        self.mailbox.note_waits(&inquiry.waits);
        let wait = inquiry.sole();
        match (wait, self.mailbox.answer(holds_up, wait)) {
            (Some(wait), Some(cycle)) => handling::breaking(wait.id, cycle, || self.run(cx)),
            _ => polled,
        }
    }
}

/// What a handler serves.
#[derive(Default)]
pub(super) struct Serving {
    /// The ask, which its own asks are for.
    ask: Option<AskNote>,
    /// The handler may have given the reply away.
    is_deferred: bool,
    handling: Handling,
}

impl Serving {
    /// Of a message that is not handled in one go.
    pub(super) fn of<A: Actor>(mailbox: &Mailbox<A>, message: &A::LocalMsg) -> Self {
        let carried = message.carried();
        Self {
            ask: carried.reply().note(),
            is_deferred: carried.is_deferred(),
            handling: Handling::go_on(mailbox, message),
        }
    }

    /// A reader goes on with the message.
    pub(super) fn put_off(self) {
        self.handling.put_off();
    }

    /// Runs what serves it.
    #[inline]
    pub(super) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        let run = || handling::serving(self.ask, run);
        self.handling.during(run)
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
