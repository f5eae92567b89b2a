//! An actor's life: one task, from its start hook to its last message.
//!
//! The actor's state lies in its [`Mailbox`]. The handler of an asynchronous message borrows it across its awaits, and its
//! future is part of the task's allocation. Whatever ends the task (a stop, a panic, a kill, the end of the shard) the
//! locals of [`live`] are dropped in one order: what a cancelled handler held, with its borrow of the state, and last
//! [`End`], which drops the state, closes the mailbox and takes the name out of the tables.

mod border;
mod end;
mod late;
mod serve;

pub(crate) use self::border::contain;
pub(crate) use self::late::start_late;

use std::future::poll_fn;
use std::pin::pin;

use futures_channel::oneshot;

use self::border::{Caught, Interrupted};
use self::end::End;
use self::serve::{Ended, serve_all};
use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::context::Ctx;
use crate::error::{SpawnErrorKind, StartFailure};
use crate::mailbox::{Mailbox, settle};
use crate::registry::Registry;

/// Whom to tell how the start went.
pub(crate) type Started = oneshot::Sender<Result<(), SpawnErrorKind>>;

/// Starts an actor on the calling shard; `None` on a thread that is none.
pub(crate) fn start<A: Actor>(actor: A, started: Option<Started>) -> Option<Addr<A>> {
    let registry = Registry::current()?;
    let mailbox = settle(Some(actor));
    let id = mailbox.id();
    let key = registry.insert(mailbox.clone());
    let end = End {
        mailbox: mailbox.clone(),
        registry,
        key,
    };
    let task = greenroom_runtime::spawn(live(started, end));
    mailbox.set_task(task);
    Some(Addr::from_port(Remote::new(id)))
}

/// The parameters are dropped in their order if the task is dropped before its first poll, and later the locals in the
/// reverse of theirs; see the module's text.
async fn live<A: Actor>(started: Option<Started>, end: End<A>) {
    let end = end;
    let mut interrupted = Interrupted { armed: true };
    run(&end, started).await;
    interrupted.armed = false;
}

/// All of a life, from the start hook to the stopping hook. Timers that are due come first in each poll.
async fn run<A: Actor>(end: &End<A>, started: Option<Started>) {
    let mut life = pin!(run_hooks(end, started));
    poll_fn(|cx| {
        end.mailbox.begin_poll(cx.waker());
        life.as_mut().poll(cx)
    })
    .await;
}

async fn run_hooks<A: Actor>(end: &End<A>, started: Option<Started>) {
    let mailbox = &*end.mailbox;
    if run_start_hook(mailbox, started).await {
        match serve_all(mailbox).await {
            Ended::Stopped => run_stop_hook(end).await,
            Ended::Panicked => end.registry.count_panic(),
        }
    }
}

/// Runs the start hook and reports on it; false if the actor is not to live.
#[expect(clippy::await_holding_refcell_ref, reason = "see `Mailbox::state`")]
async fn run_start_hook<A: Actor>(mailbox: &Mailbox<A>, started: Option<Started>) -> bool {
    let outcome = {
        let mut state = mailbox.state();
        let mut ctx = Ctx::new(mailbox.id());
        let hook = pin!(async {
            state.started(&mut ctx).await?;
            A::begin_timers(&mut ctx);
            Ok(())
        });
        match Caught::new(mailbox, hook).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(SpawnErrorKind::Refused(failure)),
            Err(report) => Err(SpawnErrorKind::Panicked(report)),
        }
    };
    let lives = outcome.is_ok();
    match &outcome {
        Err(SpawnErrorKind::Refused(failure)) => mailbox.note_failed_start(failure),
        Err(SpawnErrorKind::Panicked(report)) => late::note_panic(mailbox, report),
        _ => {}
    }
    if matches!(outcome, Err(SpawnErrorKind::Panicked(_))) {
        Registry::with(Registry::count_panic);
    }
    if let Some(started) = started {
        // Whoever asked for the actor may be gone; the actor lives all the same.
        drop(started.send(outcome));
    } else if let Err(SpawnErrorKind::Refused(StartFailure { .. })) = outcome {
        Registry::with(Registry::count_told_error);
    }
    lives
}

#[expect(clippy::await_holding_refcell_ref, reason = "see `Mailbox::state`")]
async fn run_stop_hook<A: Actor>(end: &End<A>) {
    let mut state = end.mailbox.state();
    let mut ctx = Ctx::new(end.mailbox.id());
    let hook = pin!(state.stopping(&mut ctx));
    if Caught::new(&end.mailbox, hook).await.is_err() {
        end.registry.count_panic();
    }
}
