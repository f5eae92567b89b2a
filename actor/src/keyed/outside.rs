//! The way to an instance from a thread that is no shard of the system.

use std::hash::Hash;
use std::rc::Rc;
use std::task::{Context, Poll};

use greenroom_runtime::mesh::{Lane, ResidentId};

use super::keeper::Keeper;
use crate::actor::Actor;
use crate::fate::Fate;
use crate::life::contain;
use crate::observe::dispose;
use crate::outside::{Outside, Sender, fate_of, go_in};
use crate::place::Place;

/// A message on its way, with its key.
pub(super) struct Arrival<K: Hash + Eq + Send + 'static, A: Actor> {
    keeper: ResidentId<Keeper<K, A>>,
    key: K,
    hash: u64,
    lane: Lane,
    env: A::Msg,
    sent: Outside,
}

impl<K: Hash + Eq + Send + 'static, A: Actor> Arrival<K, A> {
    pub(super) fn new(
        keeper: ResidentId<Keeper<K, A>>,
        key: K,
        hash: u64,
        lane: Lane,
        env: A::Msg,
        sent: Outside,
    ) -> Self {
        Self {
            keeper,
            key,
            hash,
            lane,
            env,
            sent,
        }
    }

    /// Goes to its mailbox, on the key's shard.
    pub(super) fn arrive(self) {
        let mut visitor = Visitor {
            keeper: self.keeper,
            key: Rc::new(self.key),
            hash: self.hash,
            lane: self.lane,
            env: Some(self.env),
            place: Place::None,
            sender: Sender::new(self.sent),
            fate: Fate::Stopped,
        };
        visitor.sender.arrive();
        go_in(move |cx| visitor.poll(cx));
    }
}

/// A message that has arrived: undeliverable wherever it is dropped from here on.
struct Visitor<K: Hash + Eq + Send + 'static, A: Actor> {
    keeper: ResidentId<Keeper<K, A>>,
    key: Rc<K>,
    hash: u64,
    lane: Lane,
    /// Gone once it is in a mailbox.
    env: Option<A::Msg>,
    place: Place,
    sender: Sender,
    /// What the asker hears if it is dropped.
    fate: Fate,
}

impl<K: Hash + Eq + Send + 'static, A: Actor> Visitor<K, A> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let in_line = !matches!(self.place, Place::None);
        if self.sender.gives_up(cx, in_line) {
            // Nothing is sent.
            if let Place::OfInstance(number, lane, ticket) = std::mem::take(&mut self.place) {
                self.keeper
                    .visit(|keeper| keeper.leave(&*self.key, number, lane, ticket));
            }
            contain(|| drop(self.env.take()));
            return Poll::Ready(());
        }
        let (key, env, place) = (&self.key, &mut self.env, &mut self.place);
        let pushed = self.keeper.visit(|keeper| {
            let build = || env.take().expect("built once");
            keeper.poll_push(
                &**key,
                (self.hash, self.lane),
                || key.clone(),
                place,
                cx,
                build,
            )
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

impl<K: Hash + Eq + Send + 'static, A: Actor> Drop for Visitor<K, A> {
    fn drop(&mut self) {
        if let Some(env) = self.env.take() {
            dispose::<A>(env.into(), self.fate);
        }
    }
}
