//! The way of a call to the instance of a key.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::rc::Rc;
use std::task::{Context, Poll};

use greenroom_runtime::mesh::{
    self, Admission, AskId, Lane, OutsidePass, Refusal, ResidentId, Route,
};

use super::keeper::{Keeper, Parcel, flow_of};
use super::outside::Arrival;
use crate::actor::{Actor, Overflow};
use crate::address::{Addr, Job, Port, Refused, sealed};
use crate::call::{Call, Method, ReplyMode};
use crate::error::CallSite;
use crate::outside::Outside;
use crate::place::Place;
use crate::reply::{Answer, Reply};
use crate::route::Aimed;
use crate::way::{Suits, Way};

/// What stands for the instance of a key: called like an address.
///
/// Got from [`Keyed::at`](crate::Keyed::at). It borrows the key, and keeps nothing alive.
pub type AddrByKey<'a, K, Q, A> = Addr<A, ByKey<'a, K, Q, A>>;

/// The way of an [`AddrByKey`]: through the keeper of the key's shard, from anywhere.
pub struct ByKey<'a, K: 'static, Q: ?Sized, A: Actor> {
    keeper: ResidentId<Keeper<K, A>>,
    key: &'a Q,
    /// Decided on the shard.
    hash: u64,
}

impl<'a, K: 'static, Q: ?Sized, A: Actor> ByKey<'a, K, Q, A> {
    pub(crate) fn new(keeper: ResidentId<Keeper<K, A>>, key: &'a Q, hash: u64) -> Self {
        Self { keeper, key, hash }
    }
}

impl<K: 'static, Q: ?Sized, A: Actor> Clone for ByKey<'_, K, Q, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: 'static, Q: ?Sized, A: Actor> Copy for ByKey<'_, K, Q, A> {}

impl<K: 'static, Q: ?Sized, A: Actor> fmt::Debug for ByKey<'_, K, Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByKey")
            .field("actor", &A::NAME)
            .finish_non_exhaustive()
    }
}

impl<K: 'static, Q: ?Sized, A: Actor> sealed::Sealed for ByKey<'_, K, Q, A> {}

impl<K: 'static, Q: ?Sized, A: Actor> Aimed for ByKey<'_, K, Q, A> {}

impl<K, Q, A> ByKey<'_, K, Q, A>
where
    K: Borrow<Q> + Hash + Eq + Send + 'static,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    A: Actor,
{
    fn owned(self) -> Rc<K> {
        Rc::new(self.key.to_owned())
    }

    fn is_choked(self, lane: Lane) -> bool {
        let flow = flow_of(self.keeper, self.hash);
        self.keeper.is_choked_in(flow, lane)
    }

    /// Puts the message into the mailbox, or waits in its line.
    fn poll_here(
        self,
        lane: Lane,
        place: &mut Place,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> A::Msg,
    ) -> Poll<Result<(), Refused>> {
        if matches!(place, Place::Link(_)) {
            self.leave(place);
        }
        self.keeper
            .visit(|keeper| {
                keeper.poll_push(
                    self.key,
                    (self.hash, lane),
                    || self.owned(),
                    place,
                    cx,
                    build,
                )
            })
            .unwrap_or(Poll::Ready(Err(Refused::Stopped)))
    }
}

impl<K, Q, A> Way for ByKey<'_, K, Q, A>
where
    K: Borrow<Q> + Hash + Eq + Send + 'static,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    A: Actor,
{
    type Actor = A;
    type Env = A::Msg;
    type Call<M: ReplyMode, Args, B> = Call<Self, M, Args, B>;

    fn call<M: ReplyMode, Args: Suits<Self>, B: Method<Self, M, Args>>(
        self,
        args: Args,
    ) -> Call<Self, M, Args, B> {
        Call::new(self, args)
    }
}

impl<K, Q, A> Port for ByKey<'_, K, Q, A>
where
    K: Borrow<Q> + Hash + Eq + Send + 'static,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    A: Actor,
{
    #[cold]
    fn site(self, method: &'static str) -> CallSite {
        CallSite {
            actor: A::NAME,
            method,
            shard: self.keeper.place(),
            number: self.keeper.number(),
        }
    }

    fn into_local(env: A::Msg) -> A::LocalMsg {
        env.into()
    }

    fn try_send(self, lane: Lane, build: impl FnOnce() -> A::Msg) -> Result<(), Refused> {
        let here = self.keeper.visit_with(build, |keeper, build| {
            let mailbox = keeper.mailbox(self.key, self.hash, || self.owned());
            let mailbox = mailbox.ok_or(Refused::Stopped)?;
            mailbox.try_push(lane, || build().into())
        });
        let build = match here {
            Ok(sent) => return sent,
            Err(build) => build,
        };
        match self.keeper.route() {
            Route::Here => Err(Refused::Stopped),
            Route::Outside => Err(Refused::Outside),
            Route::Peer(_) => {
                let parcel = || Parcel::Message(self.key.to_owned(), lane, build());
                let flow = flow_of(self.keeper, self.hash);
                self.keeper.try_send_in(flow, lane, parcel).map_err(refused)
            }
        }
    }

    fn ask_at_once<R: 'static>(
        self,
        lane: Lane,
        build: impl FnOnce(Reply<R>) -> A::Msg,
    ) -> Option<Answer<R>> {
        let mailbox = self
            .keeper
            .visit(|keeper| keeper.open_mailbox(self.key))
            .flatten()?;
        mailbox.ask_at_once(lane, |reply| build(reply).into())
    }

    fn poll_send(
        self,
        lane: Lane,
        place: &mut Place,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> A::Msg,
    ) -> Poll<Result<(), Refused>> {
        // A send that moved to another thread while it waited gives up the line it stood in there.
        match self.keeper.route() {
            Route::Here => self.poll_here(lane, place, cx, build),
            Route::Peer(_) if A::OVERFLOW == Overflow::Reject && self.is_choked(lane) => {
                self.leave(place);
                Poll::Ready(Err(Refused::Full))
            }
            Route::Peer(_) => {
                let mut admission = match *place {
                    Place::Link(admission) => admission,
                    _ => {
                        self.leave(place);
                        Admission::default()
                    }
                };
                let parcel = || Parcel::Message(self.key.to_owned(), lane, build());
                let flow = flow_of(self.keeper, self.hash);
                let sent = self
                    .keeper
                    .poll_send_in(flow, lane, &mut admission, cx, parcel);
                *place = if sent.is_pending() {
                    Place::Link(admission)
                } else {
                    Place::None
                };
                sent.map(|sent| sent.map_err(refused))
            }
            Route::Outside => {
                self.leave(place);
                Poll::Ready(Err(Refused::Outside))
            }
        }
    }

    fn send_outside(self, lane: Lane, env: A::Msg, sent: Outside) -> Result<(), Refused> {
        let arrival = Arrival::new(self.keeper, self.key.to_owned(), self.hash, lane, env, sent);
        // A shard that is gone gives the job back; dropping it tells the asker through its reply.
        let arrived = self.keeper.run_there(Box::new(move || arrival.arrive()));
        arrived.map_err(|_| Refused::Stopped)
    }

    fn leave(self, place: &mut Place) {
        match std::mem::take(place) {
            Place::None | Place::Mailbox(..) => {}
            Place::Link(mut admission) => mesh::leave(&mut admission),
            Place::OfInstance(number, lane, ticket) => {
                let left = self
                    .keeper
                    .visit(|keeper| keeper.leave(self.key, number, lane, ticket));
                if left.is_none() && self.keeper.route() != Route::Here {
                    // Polled and then dropped away from the shard it waited on. If that shard is gone, so is the line.
                    let (keeper, key) = (self.keeper, self.key.to_owned());
                    drop(keeper.run_there(Box::new(move || {
                        keeper.visit(|keeper| keeper.leave::<K>(&key, number, lane, ticket));
                    })));
                }
            }
        }
    }

    fn give_up(self, ask: Option<AskId>) {
        if self.keeper.route() == Route::Here {
            self.keeper
                .visit(|keeper| keeper.note_given_up(self.key, None));
        } else {
            // A keeper whose shard is gone has no instances.
            drop(self.keeper.post(Parcel::GivenUp(self.key.to_owned(), ask)));
        }
    }

    fn enter_outside(self) -> Result<OutsidePass, Refused> {
        self.keeper.enter_outside().map_err(refused)
    }

    fn run_there(self, job: Job) -> Result<(), Job> {
        self.keeper.run_there(job)
    }
}

fn refused(refusal: Refusal) -> Refused {
    match refusal {
        Refusal::Full => Refused::Full,
        Refusal::Gone => Refused::Stopped,
    }
}
