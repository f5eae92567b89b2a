//! Actors whose mailbox is there before they are: messages wait until the actor was made.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_runtime::task::{self, FirstPoll};

use super::border::{Caught, Cause, Interrupted};
use super::end::End;
use super::exit::ExitReason;
use super::{run, serve};
use crate::actor::Actor;
use crate::error::StartFailure;
use crate::fate::PanicReport;
use crate::mailbox::{Mailbox, settle};
use crate::registry::Registry;

/// Starts an actor on the calling shard as soon as it was made; `None` on a thread that is none.
///
/// If it cannot be made the mailbox ends, and what it holds is handed back with the cause.
pub(crate) fn start_late<A: Actor>(
    birth: impl Future<Output = Result<A, StartFailure>> + 'static,
) -> Option<Rc<Mailbox<A>>> {
    let registry = Registry::current()?;
    let mailbox = settle(None, registry.tally::<A>());
    let key = registry.insert(mailbox.clone());
    mailbox.set_key(key);
    mailbox.tally().begin_actor();
    let end = End {
        mailbox: mailbox.clone(),
        registry,
    };
    let (task, waker) = task::spawn_with_waker(FirstPoll::Soon, live_late(birth, end));
    mailbox.set_task(task, waker);
    Some(mailbox)
}

/// As `live`, after the birth.
async fn live_late<A: Actor>(birth: impl Future<Output = Result<A, StartFailure>>, end: End<A>) {
    let end = end;
    let mut interrupted = Interrupted { armed: true };
    let born = {
        let birth = pin!(birth);
        Caught::new(&end.mailbox, birth).await
    };
    match born {
        Ok(Ok(actor)) => {
            end.mailbox.set_actor(actor);
            run(None, &end).await;
        }
        Ok(Err(failure)) => {
            end.mailbox.note_failed_start(&failure);
            end.mailbox.fail(ExitReason::StartFailed(Arc::new(failure)));
            // Whoever asked it something hears of it.
            end.mailbox.bonds().is_reported.set(true);
        }
        Err(cause) => {
            if let Cause::Panicked(report) = &cause {
                note_panic(&end.mailbox, report);
            }
            serve::fail(&end.mailbox, cause);
        }
    }
    interrupted.armed = false;
}

pub(super) fn note_panic<A: Actor>(mailbox: &Mailbox<A>, report: &PanicReport) {
    mailbox.note_failed_start(&format_args!("it panicked: {report}"));
}
