//! Concurrent messages: handlers that run side by side.
//!
//! A `#[message(concurrent)]` handler takes `&self` and awaits. While one runs, others of its kind may start: this is a
//! *reading phase*. For the actor's task the phase is like one message with an asynchronous handler. It begins with the
//! first concurrent message and ends when no reader is left; then the next message has the actor for itself.
//!
//! # Order
//! Readers start in the order of the mailbox, urgent ones first. The phase takes messages while the next one is concurrent and fewer
//! than [`Concurrent::CONCURRENT`] readers run. Anything else at the front, a writer or a stop, stays there until the
//! phase has ended, and so does what stands behind it: a waiting writer stops new readers.
//!
//! # Who owns what
//! Every reader borrows the state from the cell in the mailbox, shared, for as long as it runs; that is what keeps
//! writers out. Its future is in the group, which is a local of the actor's task. So a kill drops all of them before the
//! state, on the actor's shard, like any other handler.
//!
//! # Panics
//! The panic of one reader ends the actor, as any panic does. Its asker gets the report; the readers beside it are cut
//! off at their await points and their askers hear that the actor was killed while they ran, for that is what happened
//! to them.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt};
use greenroom_runtime::yield_now;

use super::border::{Cause, Interrupted, Serving, contain};
use super::share::Share;
use super::summons::Summons;
use crate::actor::Actor;
use crate::context::Ctx;
use crate::fate::{self, Fate};
use crate::handling;
use crate::mailbox::{Mailbox, Next};
use crate::reply::Carries;

/// An actor some of whose messages are concurrent.
#[doc(hidden)]
pub trait Concurrent: Actor {
    /// How many of them may be handled at a time.
    const CONCURRENT: usize = 64;

    /// Whether a message is one of them.
    fn is_concurrent(message: &Self::LocalMsg) -> bool;

    /// Handles one of them.
    fn dispatch_concurrent(
        &self,
        message: Self::LocalMsg,
        ctx: &mut Ctx<Self>,
    ) -> impl Future<Output = ()>;
}

/// How a reading phase ended: with its last reader, with the panic of one, or cut off.
#[derive(Debug)]
pub struct ReadingPhase(Result<(), Cause>);

impl ReadingPhase {
    /// Why it ended before its last reader.
    pub(super) fn into_cause(self) -> Option<Cause> {
        self.0.err()
    }
}

/// Begins a reading phase if the message is concurrent, or gives it back.
///
/// # Errors
/// The message, if it is not.
pub fn overlap<A: Concurrent>(
    mailbox: &Mailbox<A>,
    message: A::LocalMsg,
    share: &mut Share,
) -> Result<impl Future<Output = ReadingPhase>, A::LocalMsg> {
    const {
        assert!(
            A::CONCURRENT > 0,
            "`concurrent` is 0: at least one concurrent message must be able to run"
        );
    }
    if A::is_concurrent(&message) {
        Ok(reading_phase(mailbox, message, share))
    } else {
        Err(message)
    }
}

/// Handles concurrent messages side by side, until none is left. What the actor is summoned for waits like a writer.
async fn reading_phase<A: Concurrent>(
    mailbox: &Mailbox<A>,
    first: A::LocalMsg,
    share: &mut Share,
) -> ReadingPhase {
    let mut readers = Readers {
        interrupted: Interrupted { armed: true },
        running: FuturesUnordered::new(),
    };
    let mut begun = 0..;
    let mut begin = |message| begin(mailbox, begun.next().unwrap_or(u64::MAX), message);
    readers.running.push(begin(first));
    let mut has_waited = false;
    let outcome = poll_fn(|cx| {
        mailbox.go_on_reading();
        let summonses = mailbox.summonses();
        if summonses.has(Summons::Cut) {
            return Poll::Ready(Err(Cause::Cut));
        }
        if std::mem::replace(&mut has_waited, true) {
            share.renew();
        }
        if mailbox.is_asked() {
            // No call of theirs is the only one that the actor waits for, but a snapshot may want to show them.
            mailbox.answer(None, None);
            poll_all(&mut readers.running);
        }
        loop {
            while let Poll::Ready(Some(ended)) = readers.running.poll_next_unpin(cx) {
                if ended.is_err() {
                    return Poll::Ready(ended);
                }
            }
            if mailbox.summonses().has(Summons::Kill) {
                // By one of the readers: the task is dropped when this poll returns.
                return Poll::Pending;
            }
            // Whether there is a next letter, once that was looked at.
            let mut has_next = None;
            if summonses.are_none() && readers.running.len() < A::CONCURRENT {
                if !share.take() {
                    // Other tasks of the shard have their turn before the next reader.
                    return pin!(yield_now()).poll(cx).map(Ok);
                }
                match mailbox.pop_if(A::is_concurrent) {
                    Next::Message(message) => {
                        mailbox.tally().handle();
                        readers.running.push(begin(message));
                        continue;
                    }
                    Next::Skipped => continue,
                    Next::Other => has_next = Some(true),
                    Next::Empty => has_next = Some(false),
                }
            }
            if readers.running.is_empty() {
                return Poll::Ready(Ok(()));
            }
            mailbox.note_wait();
            if let Some(has_next) = has_next {
                mailbox.wait_reading(has_next);
            }
            return Poll::Pending;
        }
    })
    .await;
    readers.interrupted.armed = false;
    // After a panic there may be others.
    fate::with(Fate::Killed, || drop(readers));
    ReadingPhase(outcome)
}

/// Begins with one concurrent message.
fn begin<A: Concurrent>(
    mailbox: &Mailbox<A>,
    number: u64,
    message: A::LocalMsg,
) -> Reader<'_, A, impl Future<Output = ()>> {
    Reader {
        mailbox,
        number,
        place: mailbox.seat_reader(message.carried().method()),
        serves: Serving::of(mailbox, &message),
        handler: Some(Box::pin(read(mailbox, message))),
    }
}

/// Has all of them polled, whoever was woken, in the order in which they were begun.
#[cold]
fn poll_all<A: Actor, F: Future<Output = ()>>(running: &mut FuturesUnordered<Reader<'_, A, F>>) {
    let mut again: Vec<_> = std::mem::take(running).into_iter().collect();
    again.sort_unstable_by_key(|reader| reader.number);
    running.extend(again);
}

/// One concurrent message, from its start to its answer.
#[expect(clippy::await_holding_refcell_ref, reason = "keeps every writer out")]
async fn read<A: Concurrent>(mailbox: &Mailbox<A>, message: A::LocalMsg) {
    let state = mailbox.shared_state();
    let mut ctx = Ctx::new(mailbox.id());
    state.dispatch_concurrent(message, &mut ctx).await;
}

/// The handlers that run.
struct Readers<R> {
    // Dropped first: what follows was interrupted, unless this was disarmed.
    interrupted: Interrupted,
    running: FuturesUnordered<R>,
}

/// One handler. A panic in it is its output, and a panic in a drop of it goes no further: there may be others to drop.
struct Reader<'a, A: Actor, F> {
    mailbox: &'a Mailbox<A>,
    /// The how manieth of its phase.
    number: u64,
    /// Where it is listed.
    place: usize,
    /// The ask that its own asks are for.
    serves: Serving,
    /// Gone when it is being dropped.
    handler: Option<Pin<Box<F>>>,
}

impl<A: Actor, F: Future<Output = ()>> Future for Reader<'_, A, F> {
    type Output = Result<(), Cause>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            mailbox,
            place,
            serves,
            handler,
            ..
        } = &mut *self;
        let Some(handler) = handler else {
            return Poll::Ready(Ok(()));
        };
        // Killed by another reader in the same turn: nothing of the actor runs any more.
        if mailbox.summonses().has(Summons::Kill) {
            return Poll::Pending;
        }
        let poll = || catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx)));
        let polled = mailbox.while_handling(|| serves.during(|| mailbox.poll_reader(*place, poll)));
        match polled {
            Ok(Poll::Pending) => {
                mailbox.note_reader_wait(*place, handling::last_wait());
                Poll::Pending
            }
            Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
            Err(payload) => {
                mailbox.begin_failure();
                Poll::Ready(Err(Cause::Panicked(fate::report(payload))))
            }
        }
    }
}

impl<A: Actor, F> Drop for Reader<'_, A, F> {
    fn drop(&mut self) {
        let handler = self.handler.take();
        contain(|| drop(handler));
        self.mailbox.unseat_reader(self.place);
    }
}
