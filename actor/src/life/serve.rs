//! What an actor does while it runs: it takes its messages, one after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use super::bonds::Event;
use super::border::{Caught, Cause, Serving};
use super::exit::ExitReason;
use super::share::Share;
use super::summons::Summons;
use crate::actor::Actor;
use crate::context::Ctx;
use crate::errand::Brought;
use crate::fate;
use crate::mailbox::{Letter, Mailbox};
use crate::reply::Carries;

/// What ended a stretch of synchronous messages.
enum Served<A: Actor> {
    Empty,
    /// The activation's share is used up.
    Share,
    Awaits(A::LocalMsg),
    Stop,
    Summoned,
}

/// What ended an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Stopped,
    /// It is to be restarted, together with others.
    Halted,
    /// Why is with the bonds of the actor.
    Failed,
    /// As `Failed`, in the start hook.
    Unstarted,
}

/// Handles messages until the actor is to stop, or fails.
#[expect(clippy::await_holding_refcell_ref, reason = "see `Mailbox::state`")]
#[expect(clippy::manual_async_fn, reason = "keeps its parameters once")]
pub(super) fn serve_all<A: Actor>(mailbox: &Mailbox<A>) -> impl Future<Output = Ended> {
    async move {
        // Counts asynchronous messages too: their handlers need not wait for anything.
        let mut share = Share::new();
        loop {
            // Handlers and waits are parts of the task one after the other, so they take the same memory.
            let message = match next(mailbox, &mut share).await {
                Ok(message) => message,
                Err(ended) => return ended,
            };
            let (message, served) = begin(mailbox, message);
            let mut has_waited = false;
            let cause = 'handled: {
                let message = match A::overlap(mailbox, message, &mut share) {
                    Ok(readers) => {
                        served.put_off();
                        break 'handled readers.await.into_cause();
                    }
                    Err(message) => message,
                };
                let mut state = mailbox.state();
                let mut ctx = Ctx::new(mailbox.id());
                // A handler is an `async fn`, of which nothing runs yet, unless an attribute made something else of it.
                let begun = catch_unwind(AssertUnwindSafe(|| state.dispatch(message, &mut ctx)));
                let handler = match begun {
                    Ok(handler) => pin!(handler),
                    Err(payload) => {
                        mailbox.begin_failure();
                        break 'handled Some(Cause::Panicked(fate::report(payload)));
                    }
                };
                let mut caught = Caught::serving(served, mailbox, handler);
                let cause = (&mut caught).await.err();
                has_waited = caught.has_waited();
                cause
            };
            let beside = mailbox.end_handling();
            if has_waited {
                share.renew();
            } else {
                share.charge(beside);
            }
            if let Some(cause) = cause {
                fail(mailbox, cause);
            }
        }
    }
}

/// Begins with a message whose handler is asynchronous. By value: the task has no place for what is only looked at.
fn begin<A: Actor>(mailbox: &Mailbox<A>, message: A::LocalMsg) -> (A::LocalMsg, Serving) {
    mailbox.begin_handling(message.carried().method());
    let served = Serving::of(mailbox, &message);
    (message, served)
}

/// Handles messages up to one whose handler is asynchronous.
#[expect(clippy::manual_async_fn, reason = "keeps its parameters once")]
fn next<A: Actor>(
    mailbox: &Mailbox<A>,
    share: &mut Share,
) -> impl Future<Output = Result<A::LocalMsg, Ended>> {
    async move {
        loop {
            // One unwind border for a whole stretch: a panic ends the actor anyway.
            match catch_unwind(AssertUnwindSafe(|| serve_now(mailbox, share))) {
                Ok(Served::Empty) => {
                    mailbox.filled().await;
                    share.renew();
                }
                Ok(Served::Share) => {
                    greenroom_runtime::yield_now().await;
                    mailbox.ripen_errands();
                    share.renew();
                }
                Ok(Served::Awaits(message)) => return Ok(message),
                Ok(Served::Stop) => return Err(Ended::Stopped),
                // Rare, and most actors have no hook for any: no room is kept for this in their tasks.
                Ok(Served::Summoned) => match Box::pin(answer(mailbox)).await {
                    None => {}
                    Some(ended) => return Err(ended),
                },
                Err(payload) => {
                    mailbox.begin_failure();
                    fail(mailbox, Cause::Panicked(fate::report(payload)));
                }
            }
        }
    }
}

fn serve_now<A: Actor>(mailbox: &Mailbox<A>, share: &mut Share) -> Served<A> {
    let _time = mailbox.time();
    let mut actor = mailbox.state();
    let mut ctx = Ctx::new(mailbox.id());
    while share.take() {
        if !mailbox.summonses().are_none() {
            return Served::Summoned;
        }
        match mailbox.pop() {
            None => return Served::Empty,
            Some(Letter::Stop) => return Served::Stop,
            Some(Letter::Errand(slot)) => match mailbox.take_errand(slot) {
                None => {}
                Some(Brought::Call(call)) => call(&mut actor, &mut ctx),
                Some(Brought::Message(message)) => {
                    let handling = mailbox.begin_message(&message);
                    if let Some(message) = handling.during(|| actor.dispatch_now(message, &mut ctx))
                    {
                        handling.put_off();
                        return Served::Awaits(message);
                    }
                }
            },
            Some(Letter::Message(message)) => {
                let message = if mailbox.looks_first() {
                    match mailbox.skip_given_up(message) {
                        Some(message) => message,
                        None => continue,
                    }
                } else {
                    message
                };
                let handling = mailbox.begin_message(&message);
                if let Some(message) = handling.during(|| actor.dispatch_now(message, &mut ctx)) {
                    handling.put_off();
                    return Served::Awaits(message);
                }
            }
        }
    }
    Served::Share
}

/// Notes why the actor fails; it finds the summons next.
pub(super) fn fail<A: Actor>(mailbox: &Mailbox<A>, cause: Cause) {
    match cause {
        Cause::Panicked(report) => {
            mailbox.fail(ExitReason::Panicked(std::sync::Arc::new(report)));
        }
        // What the handler held is dropped by now; nothing else is to hear of it.
        Cause::Cut => drop(fate::set(None)),
    }
}

/// Does what the actor was summoned for.
async fn answer<A: Actor>(mailbox: &Mailbox<A>) -> Option<Ended> {
    let summonses = mailbox.summonses();
    if summonses.has(Summons::Kill) {
        // The future is dropped when this poll returns.
        greenroom_runtime::yield_now().await;
        None
    } else if summonses.has(Summons::Fail) {
        Some(Ended::Failed)
    } else if summonses.has(Summons::Halt) {
        // It was for the handler: the stopping hook has its own time.
        summonses.clear(Summons::Cut);
        Some(Ended::Halted)
    } else if let Some(event) = mailbox.next_event() {
        run_hook(mailbox, event).await;
        None
    } else {
        // A cut that came too late: the handler has ended.
        summonses.clear(Summons::Cut);
        None
    }
}

#[expect(clippy::await_holding_refcell_ref, reason = "see `Mailbox::state`")]
async fn run_hook<A: Actor>(mailbox: &Mailbox<A>, event: Event) {
    mailbox.begin_handling(match event {
        Event::Down(_) => &"#[on(down)]",
        Event::ChildExit(_) => &"#[on(child_exit)]",
        Event::Error(_) => &"#[on(error)]",
    });
    let cause = {
        let mut state = mailbox.state();
        let mut ctx = Ctx::new(mailbox.id());
        match event {
            Event::Down(down) => {
                let hook = pin!(state.down(down, &mut ctx));
                Caught::new(mailbox, hook).await.err()
            }
            Event::ChildExit(exit) => {
                let hook = pin!(state.child_exit(exit, &mut ctx));
                Caught::new(mailbox, hook).await.err()
            }
            Event::Error(error) => {
                let hook = pin!(state.told_error(error, &mut ctx));
                Caught::new(mailbox, hook).await.err()
            }
        }
    };
    mailbox.end_handling();
    if let Some(cause) = cause {
        fail(mailbox, cause);
    }
}
