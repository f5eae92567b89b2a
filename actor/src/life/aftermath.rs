//! What follows an incarnation of an actor that has ties: its children stop, and it is started again or not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::time;

use super::bonds::Parent;
use super::control::Control;
use super::end::End;
use super::exit::{ExitReason, RestartLimit};
use super::restart::{Lineage, Restart, Sequel};
use super::serve::Ended;
use super::{Stage, incarnation, serve};
use crate::actor::Actor;
use crate::fate::{self, PanicReport};
use crate::mailbox::Mailbox;

/// Lives on until the actor ends for good.
pub(super) async fn run<A: Actor>(end: &End<A>, first: Ended) {
    let mut ended = first;
    let mut lineage = take_lineage(&end.mailbox);
    loop {
        end.mailbox.set_stage(Stage::Stopping);
        end.mailbox.end_incarnation();
        stop_children(&end.mailbox).await;
        // The first start is the business of whoever spawned the actor.
        let unstarted = ended == Ended::Unstarted && end.mailbox.incarnation() == 0;
        if unstarted || !may_come_again(&end.mailbox, ended) {
            return;
        }
        let Some(lineage) = lineage.as_mut() else {
            return;
        };
        let Some(tell_started) = permission(&end.mailbox, lineage, ended).await else {
            return;
        };
        end.mailbox.drop_actor();
        ended = match rebirth(end, lineage) {
            Ok(()) => {
                let (started, has_started) = oneshot::channel();
                let incarnation = async { incarnation!(&end.mailbox, Some(started)) };
                let mut incarnation = std::pin::pin!(incarnation);
                tell_when_started(incarnation.as_mut(), has_started, tell_started).await
            }
            Err(report) => {
                serve::fail(&end.mailbox, super::border::Cause::Panicked(report));
                Ended::Unstarted
            }
        };
    }
}

/// How the actor may come to be again, if it is a child.
fn take_lineage<A: Actor>(mailbox: &Mailbox<A>) -> Option<Box<Lineage<A>>> {
    let lineage = mailbox.bonds().lineage.take()?;
    Some(
        lineage
            .downcast()
            .expect("it was set when the child was started"),
    )
}

/// Whether another incarnation would have something to do: one that is to stop still handles what it had accepted.
fn may_come_again<A: Actor>(mailbox: &Mailbox<A>, ended: Ended) -> bool {
    let has_stopped = matches!(ended, Ended::Stopped | Ended::Halted) && !mailbox.is_open();
    mailbox.is_open_to_restart() && !has_stopped && !mailbox.stops_next()
}

/// Runs an incarnation, and says when its start hook is done; the drop of the sender says that it failed.
async fn tell_when_started<F: Future<Output = Ended>>(
    mut incarnation: std::pin::Pin<&mut F>,
    mut has_started: oneshot::Receiver<Result<(), crate::error::SpawnErrorKind>>,
    tell: oneshot::Sender<()>,
) -> Ended {
    let mut tell = Some(tell);
    std::future::poll_fn(move |cx| {
        let polled = incarnation.as_mut().poll(cx);
        if tell.is_some()
            && let Ok(Some(outcome)) = has_started.try_recv()
            && let Some(tell) = tell.take()
            && outcome.is_ok()
        {
            // Whoever restarts it may be gone.
            let _unheard: Result<(), ()> = tell.send(());
        }
        polled
    })
    .await
}

/// Waits until the next incarnation may begin; `None` if there is none.
async fn permission<A: Actor>(
    mailbox: &Mailbox<A>,
    lineage: &mut Lineage<A>,
    ended: Ended,
) -> Option<oneshot::Sender<()>> {
    // One that failed before it could halt says so itself.
    let halted = mailbox.bonds().halt.borrow_mut().take();
    if ended == Ended::Halted {
        let (go_on, wait) = oneshot::channel();
        halted?.send(go_on).ok()?;
        return wait.await.ok();
    }
    drop(halted);
    let restarts = match lineage.restart() {
        Restart::Never => false,
        Restart::OnFailure => ended != Ended::Stopped,
        Restart::Always => true,
    };
    if !restarts {
        return None;
    }
    let delay = match lineage.failed() {
        Sequel::RestartIn(delay) => delay,
        Sequel::GiveUp => {
            let limit = RestartLimit {
                restarts: lineage.policy.restarts_max,
                within: lineage.policy.within,
                last: mailbox.failure().unwrap_or(ExitReason::Stopped),
            };
            mailbox.set_reason(ExitReason::RestartLimit(Arc::new(limit)));
            mailbox.bonds().escalates.set(true);
            return None;
        }
    };
    let (go_on, wait) = oneshot::channel();
    let down = mailbox.down(mailbox.failure().unwrap_or(ExitReason::Stopped));
    super::root::note_restart(&down, lineage.restarts());
    if let Some(Parent { addr, place }) = &*mailbox.bonds().parent.borrow() {
        let place = *place;
        addr.post(Control::ChildFailed { place, down, go_on });
    }
    let started = wait.await.ok()?;
    back_off(mailbox, delay).await;
    // One that is to stop at once need not come back for that.
    (!mailbox.stops_next()).then_some(started)
}

/// Waits before a restart, unless the actor is to stop: what it had accepted is then handled without delay.
async fn back_off<A: Actor>(mailbox: &Mailbox<A>, delay: Duration) {
    let mut sleep = std::pin::pin!(time::sleep(delay));
    std::future::poll_fn(|cx| {
        if mailbox.is_open() {
            sleep.as_mut().poll(cx)
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// Puts a new state in the place of the old one.
fn rebirth<A: Actor>(end: &End<A>, lineage: &mut Lineage<A>) -> Result<(), PanicReport> {
    end.mailbox.begin_incarnation();
    lineage.reborn();
    let factory = lineage.factory.as_mut().expect("it gave its permission");
    end.registry.count_restart();
    end.mailbox.tally().restart();
    match catch_unwind(AssertUnwindSafe(factory)) {
        Ok(actor) => {
            end.mailbox.set_actor(actor);
            Ok(())
        }
        Err(payload) => {
            end.mailbox.begin_failure();
            Err(fate::report(payload))
        }
    }
}

/// Stops the children in the reverse order of their start, each when the one before it is gone.
async fn stop_children<A: Actor>(mailbox: &Mailbox<A>) {
    let Some(bonds) = mailbox.try_bonds() else {
        return;
    };
    let children = &bonds.children;
    children.end_rounds();
    while let Some((place, child)) = children.last() {
        let Some(child) = child else {
            // Still being born, by a future that is gone: so will it be.
            children.remove(place);
            continue;
        };
        child.stop();
        std::future::poll_fn(|_| {
            if children.contains(place) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }
}
