//! What a way to an actor can do for many messages.

use futures_channel::oneshot;
use greenroom_runtime::mesh::{Lane, Route};

use crate::actor::Actor;
use crate::address::{Direct, Here, Refused, Remote, refused};
use crate::mailbox::{Parcel, PartFromOutside};

/// Messages for one actor, one after the other.
#[expect(unnameable_types, reason = "in the signature of a sealed trait")]
pub trait Run<Env> {
    /// Gets the next one ready; false when this run has ended. It may run anyone's code.
    fn prepare(&mut self) -> bool;

    /// The lane of all of them.
    fn lane(&self) -> Lane;

    /// The message that was got ready, as there is room for it.
    fn build(&mut self) -> Env;
}

/// A [`Direct`] way, and what it can do for many messages.
#[expect(unnameable_types, reason = "both ways that there are implement it")]
pub trait InBulk: Direct {
    /// Sends the messages of a run, for as long as they are accepted at once. One that is refused stays in the run.
    fn try_send_run(self, run: &mut impl Run<Self::Env>) -> Result<(), Refused>;

    /// Hands messages over from a thread that is no shard of the actor's system; the receiver hears when all are in the
    /// mailbox.
    fn send_part_outside(
        self,
        lane: Lane,
        part: Vec<Self::Env>,
        taken: oneshot::Sender<Result<(), Refused>>,
    ) -> Result<(), Refused>;
}

impl<A: Actor> InBulk for Remote<A> {
    fn try_send_run(self, run: &mut impl Run<A::Msg>) -> Result<(), Refused> {
        let here = self.id().visit(|mailbox| {
            while run.prepare() {
                mailbox.try_push(run.lane(), || run.build().into())?;
            }
            Ok(())
        });
        if let Some(sent) = here {
            return sent;
        }
        match self.id().route() {
            Route::Here => Err(Refused::Stopped),
            Route::Peer(_) => self
                .id()
                .try_send_run(run.lane(), run, Run::prepare, |run| {
                    Parcel::of(run.lane(), run.build())
                })
                .map_err(refused),
            Route::Outside => Err(Refused::Outside),
        }
    }

    fn send_part_outside(
        self,
        lane: Lane,
        part: Vec<A::Msg>,
        taken: oneshot::Sender<Result<(), Refused>>,
    ) -> Result<(), Refused> {
        let arrival = PartFromOutside::new(self.id(), lane, part, taken);
        let arrived = self.id().run_there(Box::new(move || arrival.arrive()));
        arrived.map_err(|_| Refused::Stopped)
    }
}

impl<A: Actor> InBulk for Here<A> {
    fn try_send_run(self, run: &mut impl Run<A::LocalMsg>) -> Result<(), Refused> {
        let sent = self.id().visit(|mailbox| {
            while run.prepare() {
                mailbox.try_push(run.lane(), || run.build())?;
            }
            Ok(())
        });
        sent.unwrap_or(Err(Refused::Stopped))
    }

    fn send_part_outside(
        self,
        _: Lane,
        _: Vec<A::LocalMsg>,
        _: oneshot::Sender<Result<(), Refused>>,
    ) -> Result<(), Refused> {
        // The handle cannot leave its thread; only the end of the shard makes its own thread an outside.
        Err(Refused::Stopped)
    }
}
