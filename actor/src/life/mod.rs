//! An actor's life: one task, from its start hook to its last message.
//!
//! The actor's state lies in its [`Mailbox`]. The handler of an asynchronous message borrows it across its awaits, and its
//! future is part of the task's allocation. Whatever ends the task (a stop, a panic, a kill, the end of the shard) the
//! locals of [`live`] are dropped in one order: what a cancelled handler held, with its borrow of the state, and last
//! [`End`], which drops the state, closes the mailbox and takes the name out of the tables.
//!
//! # Incarnations
//! What goes from a start hook to a stop or a failure is an *incarnation*. Most actors have one. An actor with a supervisor
//! that restarts it has several, one after the other, in one task, with one mailbox and under one address; between them
//! everything the incarnation owned is gone. What follows an incarnation is in `aftermath`, in an allocation of its own:
//! actors without children, watchers or a supervisor never have it.
//!
//! # Reading order
//! `serve`, `border`, `end`: what each actor does. `exit`: why it ends. `summons`, `control`: what reaches it besides messages.
//! `watch`, `children`, `child`, `restart`, `aftermath`: what ties actors to each other. `grace`: the time a stop may take.

mod aftermath;
mod bonds;
mod border;
mod child;
mod children;
mod context;
mod control;
mod end;
mod exit;
mod grace;
mod handle;
mod late;
mod newborn;
mod owned;
mod readers;
mod restart;
mod root;
mod serve;
mod share;
mod summons;
mod told;
mod watch;

pub(crate) use self::bonds::{Bonds, Event, Parent};
pub(crate) use self::border::contain;
pub use self::child::{Child, Factory};
pub use self::children::Strategy;
pub(crate) use self::children::failed as child_failed;
pub(crate) use self::control::{AnyAddr, Control};
pub use self::exit::{ActorId, ChildExit, ChildOutcome, Down, ExitReason, Overdue, RestartLimit};
pub(crate) use self::grace::{DEFAULT as DEFAULT_GRACE, Graces};
pub(crate) use self::late::start_late;
pub(crate) use self::newborn::{Newborn, Starting};
pub use self::owned::Owned;
pub use self::readers::{Concurrent, ReadingPhase, overlap};
pub use self::restart::Restart;
pub use self::root::OnRootFailure;
pub(crate) use self::root::{Alarm, note_root_failure, note_told_error};
pub use self::share::Share;
pub(crate) use self::summons::{Summons, Summonses};
pub use self::told::ToldError;
pub(crate) use self::watch::Gone;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::task::{self, FirstPoll};

use self::border::{Caught, Cause, Interrupted};
use self::end::End;
use self::restart::Lineage;
use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::context::Ctx;
use crate::error::SpawnErrorKind;
use crate::fate;
use crate::mailbox::{Mailbox, settle};
use crate::registry::Registry;

/// How far the life of an actor has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub enum LifeState {
    /// Its start hook has not ended, or it is about to be restarted. Messages wait.
    Starting,
    /// It handles messages.
    Running,
    /// It takes no more messages, and handles what it had accepted.
    Draining,
    /// It handles nothing more: its stopping hook runs, or its children stop.
    Stopping,
    /// It is gone.
    Stopped,
}

/// What the task of an actor is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Starting,
    Serving,
    Stopping,
    /// The task has come to its end, and was not dropped before.
    Done,
}

/// Whom to tell how the start went.
pub(crate) type Started = oneshot::Sender<Result<(), SpawnErrorKind>>;

/// Starts an actor on the calling shard; `None` on a thread that is none.
pub(crate) fn start<A: Actor>(actor: A, started: Option<Started>) -> Option<Addr<A>> {
    let registry = Registry::current()?;
    let mailbox = settle(Some(actor), registry.tally::<A>());
    Some(start_settled(registry, &mailbox, started))
}

/// Starts a child on the calling shard; `None` on a thread that is none.
pub(crate) fn start_child<A: Actor>(
    actor: A,
    started: Option<Started>,
    parent: Parent,
    lineage: Lineage<A>,
    grace: Option<Duration>,
) -> Option<Addr<A>> {
    let registry = Registry::current()?;
    let mailbox = settle(Some(actor), registry.tally::<A>());
    mailbox.set_parent(parent, lineage.restart(), grace);
    mailbox.bonds().lineage.set(Some(Box::new(lineage)));
    Some(start_settled(registry, &mailbox, started))
}

fn start_settled<A: Actor>(
    registry: Rc<Registry>,
    mailbox: &Rc<Mailbox<A>>,
    started: Option<Started>,
) -> Addr<A> {
    let key = registry.insert(mailbox.clone());
    mailbox.set_key(key);
    let id = mailbox.id();
    mailbox.tally().begin_actor();
    let first_poll = if A::HEARS_START || A::HAS_TIMERS || started.is_some() {
        FirstPoll::Soon
    } else {
        // Nothing is to be done before the first message.
        mailbox.begin_idle();
        FirstPoll::WhenWoken
    };
    let end = End {
        mailbox: mailbox.clone(),
        registry,
    };
    let (task, waker) = task::spawn_with_waker(first_poll, live(started, end));
    mailbox.set_task(task, waker);
    Addr::from_port(Remote::new(id))
}

/// What the block takes along is dropped in the order in which it is named there if the task is dropped before its first
/// poll, and later after the block's locals; see the module's text.
///
/// A block and not an `async fn`, which would keep each parameter twice. Here and below: every actor has one of these.
fn live<A: Actor>(started: Option<Started>, end: End<A>) -> impl Future<Output = ()> {
    let interrupted = Interrupted { armed: true };
    async move {
        let mut interrupted = interrupted;
        run(started, &end).await;
        interrupted.armed = false;
    }
}

/// One incarnation, from its start hook to its last hook. Not a function: each level of them costs every actor 16 bytes.
macro_rules! incarnation {
    ($mailbox:expr, $started:expr) => {
        if $crate::life::run_start_hook($mailbox, $started).await {
            let ended = $crate::life::serve::serve_all($mailbox).await;
            $mailbox.set_stage($crate::life::Stage::Stopping);
            if matches!(
                ended,
                $crate::life::serve::Ended::Stopped | $crate::life::serve::Ended::Halted
            ) {
                $crate::life::run_stop_hook($mailbox).await;
            }
            ended
        } else {
            $crate::life::serve::Ended::Unstarted
        }
    };
}
use incarnation;

/// All of a life, from the first start hook to the last stopping hook.
#[expect(clippy::manual_async_fn, reason = "keeps its parameters once")]
fn run<A: Actor>(started: Option<Started>, end: &End<A>) -> impl Future<Output = ()> {
    async move {
        let ended = incarnation!(&end.mailbox, started);
        if end.mailbox.has_bonds() {
            Box::pin(aftermath::run(end, ended)).await;
        }
        end.mailbox.set_stage(Stage::Done);
    }
}

/// Runs the start hook and reports on it; false if the actor is not to live.
#[expect(clippy::await_holding_refcell_ref, reason = "see `Mailbox::state`")]
async fn run_start_hook<A: Actor>(mailbox: &Mailbox<A>, started: Option<Started>) -> bool {
    let outcome = if A::HEARS_START {
        mailbox.begin_handling(&"#[on(started)]");
        let outcome = {
            let mut state = mailbox.state();
            let mut ctx = Ctx::new(mailbox.id());
            let hook = pin!(state.started(&mut ctx));
            Caught::new(mailbox, hook).await
        };
        mailbox.end_handling();
        outcome
    } else {
        Ok(Ok(()))
    };
    let outcome = match outcome {
        Ok(Ok(())) => begin_timers(mailbox).map(Ok),
        refused => refused,
    };
    let kind = match outcome {
        Ok(Ok(())) => {
            mailbox.set_stage(Stage::Serving);
            if let Some(started) = started {
                // Whoever asked for the actor may be gone.
                drop(started.send(Ok(())));
            }
            return true;
        }
        Ok(Err(failure)) => {
            let failure = std::sync::Arc::new(failure);
            mailbox.fail(ExitReason::StartFailed(failure.clone()));
            if started.is_none() {
                Registry::with(Registry::count_told_error);
            }
            SpawnErrorKind::Refused(failure)
        }
        Err(Cause::Panicked(report)) => {
            serve::fail(mailbox, Cause::Panicked(report.clone()));
            SpawnErrorKind::Panicked(report)
        }
        Err(Cause::Cut) => {
            serve::fail(mailbox, Cause::Cut);
            SpawnErrorKind::Cut(mailbox.failure().unwrap_or(ExitReason::Killed))
        }
    };
    match &kind {
        SpawnErrorKind::Refused(failure) => mailbox.note_failed_start(failure),
        SpawnErrorKind::Panicked(report) => late::note_panic(mailbox, report),
        _ => {}
    }
    if let Some(started) = started {
        drop(started.send(Err(kind)));
        mailbox.bonds().is_reported.set(true);
    }
    false
}

/// Begins what the actor does again and again; refused if that cannot be.
fn begin_timers<A: Actor>(mailbox: &Mailbox<A>) -> Result<(), Cause> {
    let begin = || A::begin_timers(&mut Ctx::new(mailbox.id()));
    catch_unwind(AssertUnwindSafe(begin)).map_err(|payload| Cause::Panicked(fate::report(payload)))
}

#[expect(clippy::await_holding_refcell_ref, reason = "see `Mailbox::state`")]
async fn run_stop_hook<A: Actor>(mailbox: &Mailbox<A>) {
    mailbox.begin_handling(&"#[on(stopping)]");
    let cause = {
        let mut state = mailbox.state();
        let mut ctx = Ctx::new(mailbox.id());
        let hook = pin!(state.stopping(&mut ctx));
        Caught::new(mailbox, hook).await.err()
    };
    mailbox.end_handling();
    if let Some(cause) = cause {
        serve::fail(mailbox, cause);
    }
}
