//! The way into a mailbox from a thread that is no shard of the system.

use std::task::{Context, Poll};
use std::vec;

use futures_channel::oneshot;
use greenroom_runtime::mesh::{Lane, ResidentId, Ticket};

use super::Mailbox;
use crate::actor::Actor;
use crate::address::Refused;
use crate::fate::{self, Fate};
use crate::observe::dispose;
use crate::outside::{Outside, Sender, fate_of, go_in};

/// A message that comes the long way: undeliverable wherever it is dropped on it.
pub(crate) struct FromOutside<A: Actor> {
    id: ResidentId<Mailbox<A>>,
    lane: Lane,
    /// Gone once it is in the mailbox.
    env: Option<A::Msg>,
    place: Option<Ticket>,
    sender: Sender,
    /// What the asker hears if it is dropped.
    fate: Fate,
}

impl<A: Actor> FromOutside<A> {
    pub(crate) fn new(id: ResidentId<Mailbox<A>>, lane: Lane, env: A::Msg, sent: Outside) -> Self {
        Self {
            id,
            lane,
            env: Some(env),
            place: None,
            sender: Sender::new(sent),
            fate: Fate::Stopped,
        }
    }

    /// Goes into the mailbox, on the actor's shard.
    pub(crate) fn arrive(mut self) {
        self.sender.arrive();
        go_in(move |cx| self.poll(cx));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let lane = self.lane;
        if self.sender.gives_up(cx, self.place.is_some()) {
            // Nothing is sent.
            let Self { id, env, place, .. } = self;
            if let Some(ticket) = place.take() {
                id.visit(|mailbox| mailbox.leave(lane, ticket));
            }
            crate::life::contain(|| drop(env.take()));
            return Poll::Ready(());
        }
        let Self { id, env, place, .. } = self;
        let pushed = id.visit(|mailbox| {
            mailbox.poll_push(lane, place, cx, || env.take().expect("built once").into())
        });
        match pushed {
            Some(Poll::Pending) => return Poll::Pending,
            Some(Poll::Ready(outcome)) => {
                // A message that was refused is disposed of by the drop of this value.
                self.fate = fate_of(outcome);
                self.sender.hear(outcome);
            }
            None => {}
        }
        Poll::Ready(())
    }
}

impl<A: Actor> Drop for FromOutside<A> {
    fn drop(&mut self) {
        if let Some(env) = self.env.take() {
            bury(self.id, env, self.fate);
        }
    }
}

/// Disposes of a message that found nobody.
fn bury<A: Actor>(id: ResidentId<Mailbox<A>>, env: A::Msg, fate: Fate) {
    if id.is_of_the_past() {
        // No dead letter of the system that has the shard's number now.
        fate::with(fate, || crate::life::contain(|| drop(env)));
    } else {
        dispose::<A>(env.into(), fate);
    }
}

/// Several messages of one sender. They count as sent: its giving up does not stop them.
pub(crate) struct PartFromOutside<A: Actor> {
    id: ResidentId<Mailbox<A>>,
    lane: Lane,
    /// Those that are not in the mailbox.
    left: vec::IntoIter<A::Msg>,
    place: Option<Ticket>,
    /// The first place in line. All the others take it again, as what the sender sends after this is to stay behind.
    first: Option<Ticket>,
    /// Dropped if they do not get in.
    taken: Option<oneshot::Sender<Result<(), Refused>>>,
    /// Why they are dropped, if they are.
    fate: Fate,
}

impl<A: Actor> PartFromOutside<A> {
    pub(crate) fn new(
        id: ResidentId<Mailbox<A>>,
        lane: Lane,
        part: Vec<A::Msg>,
        taken: oneshot::Sender<Result<(), Refused>>,
    ) -> Self {
        Self {
            id,
            lane,
            left: part.into_iter(),
            place: None,
            first: None,
            taken: Some(taken),
            fate: Fate::Stopped,
        }
    }

    /// As [`FromOutside::arrive`].
    pub(crate) fn arrive(mut self) {
        go_in(move |cx| self.poll(cx));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.left.as_slice().is_empty() {
            match self.poll_one(cx) {
                Poll::Ready(Ok(())) => self.place = self.first,
                // Disposed of by the drop of this value.
                Poll::Ready(Err(refused)) => {
                    self.fate = fate_of(Err(refused));
                    self.tell(Err(refused));
                    return Poll::Ready(());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        if let Some(ticket) = self.place.take() {
            self.id.visit(|mailbox| mailbox.leave(self.lane, ticket));
        }
        self.tell(Ok(()));
        Poll::Ready(())
    }

    fn tell(&mut self, outcome: Result<(), Refused>) {
        if let Some(taken) = self.taken.take() {
            // The sender may have given up.
            let _unheard: Result<(), _> = taken.send(outcome);
        }
    }

    fn poll_one(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        let lane = self.lane;
        let Self {
            id,
            left,
            place,
            first,
            ..
        } = self;
        let mut push = |place: &mut Option<Ticket>| {
            let pushed = id.visit(|mailbox| {
                mailbox.poll_push(lane, place, cx, || left.next().expect("one is left").into())
            });
            pushed.unwrap_or(Poll::Ready(Err(Refused::Stopped)))
        };
        let mut pushed = push(place);
        if pushed.is_pending() && first.is_some() {
            // It has taken its place in front again, where there may be room.
            pushed = push(place);
        }
        *first = first.or(*place);
        pushed
    }
}

impl<A: Actor> Drop for PartFromOutside<A> {
    fn drop(&mut self) {
        for env in self.left.by_ref() {
            bury(self.id, env, self.fate);
        }
    }
}
