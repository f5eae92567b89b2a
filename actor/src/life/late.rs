//! Actors whose mailbox is there before they are: messages wait until the actor was made.

use std::pin::pin;
use std::rc::Rc;

use super::border::{Caught, Interrupted};
use super::end::End;
use super::run;
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
    let mailbox = settle(None);
    let key = registry.insert(mailbox.clone());
    let end = End {
        mailbox: mailbox.clone(),
        registry,
        key,
    };
    let task = greenroom_runtime::spawn(live_late(birth, end));
    mailbox.set_task(task);
    Some(mailbox)
}

/// As `live`, after the birth.
async fn live_late<A: Actor>(birth: impl Future<Output = Result<A, StartFailure>>, end: End<A>) {
    let end = end;
    let mailbox = &*end.mailbox;
    let mut interrupted = Interrupted { armed: true };
    let born = {
        let birth = pin!(birth);
        Caught::new(mailbox, birth).await
    };
    match born {
        Ok(Ok(actor)) => {
            mailbox.set_actor(actor);
            run(&end, None).await;
        }
        Ok(Err(failure)) => mailbox.note_failed_start(&failure),
        Err(report) => {
            end.registry.count_panic();
            note_panic(mailbox, &report);
        }
    }
    interrupted.armed = false;
}

pub(super) fn note_panic<A: Actor>(mailbox: &Mailbox<A>, report: &PanicReport) {
    mailbox.note_failed_start(&format_args!("it panicked: {report}"));
}
