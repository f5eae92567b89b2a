//! What an actor does while it runs: it takes its messages, one after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use super::border::Caught;
use crate::actor::Actor;
use crate::context::Ctx;
use crate::errand::Brought;
use crate::fate;
use crate::mailbox::{Letter, Mailbox, Verdict};

/// Messages handled in one activation before other tasks of the shard have their turn.
const MESSAGES_PER_ACTIVATION: usize = 64;

/// What ended a stretch of synchronous messages.
enum Served<A: Actor> {
    Empty,
    /// The activation's share is used up.
    Share,
    Awaits(A::LocalMsg),
    Stop,
}

/// What ended the service.
pub(super) enum Ended {
    Stopped,
    /// The asker has the report.
    Panicked,
}

/// Handles messages until the actor is to stop, or one panics.
#[expect(clippy::await_holding_refcell_ref, reason = "see `Mailbox::state`")]
pub(super) async fn serve_all<A: Actor>(mailbox: &Mailbox<A>) -> Ended {
    // Counts asynchronous messages too: their handlers need not wait for anything.
    let mut share = MESSAGES_PER_ACTIVATION;
    loop {
        // One unwind border for a whole stretch: a panic ends the actor anyway.
        let served = catch_unwind(AssertUnwindSafe(|| serve_now(mailbox, &mut share)));
        match served {
            Ok(Served::Empty) => {
                mailbox.filled().await;
                share = MESSAGES_PER_ACTIVATION;
            }
            Ok(Served::Share) => {
                greenroom_runtime::yield_now().await;
                share = MESSAGES_PER_ACTIVATION;
            }
            Ok(Served::Awaits(message)) => {
                let mut state = mailbox.state();
                let mut ctx = Ctx::new(mailbox.id());
                let handler = pin!(state.dispatch(message, &mut ctx));
                if Caught::new(mailbox, handler).await.is_err() {
                    return Ended::Panicked;
                }
            }
            Ok(Served::Stop) if mailbox.verdict() == Some(Verdict::Panicked) => {
                return Ended::Panicked;
            }
            Ok(Served::Stop) => return Ended::Stopped,
            Err(payload) => {
                drop(fate::report(payload));
                return Ended::Panicked;
            }
        }
    }
}

fn serve_now<A: Actor>(mailbox: &Mailbox<A>, share: &mut usize) -> Served<A> {
    let mut actor = mailbox.state();
    let mut ctx = Ctx::new(mailbox.id());
    // Killed by one of its own handlers, it handles nothing more: its future is dropped when this poll returns.
    while *share > 0 && mailbox.verdict() != Some(Verdict::Killed) {
        *share -= 1;
        match mailbox.pop() {
            None => return Served::Empty,
            Some(Letter::Stop) => return Served::Stop,
            Some(Letter::Errand(slot)) => match mailbox.take_errand(slot) {
                None => {}
                Some(Brought::Call(call)) => call(&mut actor, &mut ctx),
                Some(Brought::Message(message)) => {
                    if let Some(message) = actor.dispatch_now(message, &mut ctx) {
                        return Served::Awaits(message);
                    }
                }
            },
            Some(Letter::Message(message)) => {
                if let Some(message) = actor.dispatch_now(message, &mut ctx) {
                    return Served::Awaits(message);
                }
            }
        }
    }
    Served::Share
}
