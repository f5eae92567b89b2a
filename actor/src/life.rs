//! An actor's life: one task, from its start hook to its last message.
//!
//! The actor's state lies in its [`Mailbox`]. The handler of an asynchronous message borrows it across its awaits, and its
//! future is part of the task's allocation. Whatever ends the task (a stop, a panic, a kill, the end of the shard) the
//! locals of [`live`] are dropped in one order: what a cancelled handler held, with its borrow of the state, and last
//! [`End`], which drops the state, closes the mailbox and takes the name out of the tables.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_channel::oneshot;
use greenroom_runtime::mesh;
use greenroom_runtime::task::discard_payload;

use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::context::Ctx;
use crate::error::{SpawnErrorKind, StartFailure};
use crate::fate::{self, Fate, PanicReport};
use crate::mailbox::{Letter, Mailbox, Verdict, settle};
use crate::registry::Registry;

/// Messages handled in one activation before other tasks of the shard have their turn.
const MESSAGES_PER_ACTIVATION: usize = 64;

/// Whom to tell how the start went.
pub(crate) type Started = oneshot::Sender<Result<(), SpawnErrorKind>>;

/// Starts an actor on the calling shard; `None` on a thread that is none.
pub(crate) fn start<A: Actor>(actor: A, started: Option<Started>) -> Option<Addr<A>> {
    let registry = Registry::current()?;
    let mailbox = settle(actor);
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
    let mailbox = &*end.mailbox;
    let mut interrupted = Interrupted { armed: true };
    if run_start_hook(mailbox, started).await {
        match serve_all(mailbox).await {
            Ended::Stopped => run_stop_hook(&end).await,
            Ended::Panicked => end.registry.count_panic(),
        }
    }
    interrupted.armed = false;
}

/// Runs the start hook and reports on it; false if the actor is not to live.
#[expect(clippy::await_holding_refcell_ref, reason = "see `Mailbox::state`")]
async fn run_start_hook<A: Actor>(mailbox: &Mailbox<A>, started: Option<Started>) -> bool {
    let outcome = {
        let mut state = mailbox.state();
        let mut ctx = Ctx::new(mailbox.id());
        let hook = pin!(state.started(&mut ctx));
        match Caught::new(mailbox, hook).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(SpawnErrorKind::Refused(failure)),
            Err(report) => Err(SpawnErrorKind::Panicked(report)),
        }
    };
    let lives = outcome.is_ok();
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

/// What ended a stretch of synchronous messages.
enum Served<A: Actor> {
    Empty,
    /// The activation's share is used up.
    Share,
    Awaits(A::LocalMsg),
    Stop,
}

/// What ended the service.
enum Ended {
    Stopped,
    /// The asker has the report.
    Panicked,
}

/// Handles messages until the actor is to stop, or one panics.
#[expect(clippy::await_holding_refcell_ref, reason = "see `Mailbox::state`")]
async fn serve_all<A: Actor>(mailbox: &Mailbox<A>) -> Ended {
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
            Some(Letter::Message(message)) => {
                if let Some(message) = actor.dispatch_now(message, &mut ctx) {
                    return Served::Awaits(message);
                }
            }
        }
    }
    Served::Share
}

/// Awaits a piece of the user's code; a panic in it is an error.
struct Caught<'a, A: Actor, F> {
    mailbox: &'a Mailbox<A>,
    future: Pin<&'a mut F>,
    // Dropped before the future, which is behind a reference, if this is cancelled while it waits.
    interrupted: Interrupted,
}

impl<'a, A: Actor, F> Caught<'a, A, F> {
    fn new(mailbox: &'a Mailbox<A>, future: Pin<&'a mut F>) -> Self {
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
struct Interrupted {
    armed: bool,
}

impl Drop for Interrupted {
    fn drop(&mut self) {
        if self.armed {
            // `End`, which is dropped last, takes it back.
            fate::set(Some(Fate::Killed));
        }
    }
}

/// The last local of the task to be dropped.
struct End<A: Actor> {
    mailbox: Rc<Mailbox<A>>,
    registry: Rc<Registry>,
    key: usize,
}

impl<A: Actor> Drop for End<A> {
    fn drop(&mut self) {
        self.mailbox.drop_actor();
        fate::set(None);
        let undelivered = self.mailbox.close();
        self.registry.count_dead_letters(undelivered);
        mesh::evict(self.mailbox.id());
        self.registry.remove(self.key);
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
