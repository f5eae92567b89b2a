//! The instances of one shard.

use std::borrow::Borrow;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use futures_channel::oneshot;
use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::{self, AskId, Flow, Lane, Origin, Resident, ResidentId, Ticket};
use hashbrown::HashTable;

use super::Live;
use super::builder::Factory;
use super::idle::Watched;
use crate::actor::Actor;
use crate::address::Refused;
use crate::fate::{self, Fate};
use crate::life;
use crate::mailbox::{self, Mailbox};
use crate::observe::{DeadLetterReason, dispose, report_call};
use crate::place::Place;
use crate::reply::Carries;

/// What travels to a keeper.
pub(crate) enum Parcel<K, A: Actor> {
    /// A message for the instance of a key.
    Message(K, Lane, A::Msg),
    /// Somebody does not wait any more for an answer of this key's instance; see [`Mailbox::note_given_up`].
    GivenUp(K, Option<AskId>),
    /// All instances are to stop; dropped when they have.
    Stop(oneshot::Sender<()>),
}

impl<K, A: Actor> fmt::Debug for Parcel<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Message(..) => "Message",
            Self::GivenUp(..) => "GivenUp",
            Self::Stop(_) => "Stop",
        })
    }
}

/// The place of a key in the table.
struct Seat<K, A: Actor> {
    hash: u64,
    key: Rc<K>,
    /// The last instance. It may be about to end; then the next message makes a successor.
    mailbox: Rc<Mailbox<A>>,
    /// Called since somebody looked.
    touched: Cell<bool>,
}

/// Knows the instances of the keys of one shard.
pub(crate) struct Keeper<K: 'static, A: Actor> {
    id: OnceCell<ResidentId<Self>>,
    /// For what is done later.
    me: Weak<Self>,
    /// One seat a key. No foreign code but the comparison of keys runs while it is borrowed.
    seats: RefCell<HashTable<Seat<K, A>>>,
    /// Its own, so that keys which share a shard do not share a part of the table.
    hasher: SeedableRandomState,
    make: Factory<K, A>,
    pub(super) idle: Option<Duration>,
    pub(super) watched: RefCell<Watched>,
    /// Instances that have not ended, predecessors included.
    count: Cell<usize>,
    live: Arc<Live>,
    shard: ShardId,
    /// Who waits for the end of the last instance. `Some` from the stop on.
    stopping: RefCell<Option<Vec<oneshot::Sender<()>>>>,
}

impl<K: 'static, A: Actor> fmt::Debug for Keeper<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("actor", &A::NAME)
            .field("count", &self.count.get())
            .finish_non_exhaustive()
    }
}

impl<K: Hash + Eq + Send + 'static, A: Actor> Keeper<K, A> {
    /// Puts a keeper into the tables of the calling shard.
    pub(super) fn settle(
        make: Factory<K, A>,
        idle: Option<Duration>,
        live: Arc<Live>,
        shard: ShardId,
    ) -> ResidentId<Self> {
        let seed = greenroom_runtime::random();
        let keeper = Rc::new_cyclic(|me| Self {
            id: OnceCell::new(),
            me: me.clone(),
            seats: RefCell::default(),
            hasher: SeedableRandomState::with_seed(seed, SharedSeed::global_fixed()),
            make,
            idle,
            watched: RefCell::default(),
            count: Cell::new(0),
            live,
            shard,
            stopping: RefCell::new(None),
        });
        let id = mesh::settle(keeper.clone());
        keeper.id.set(id).expect("settled once");
        id
    }

    pub(super) fn id(&self) -> ResidentId<Self> {
        *self.id.get().expect("set when it settled")
    }

    /// The mailbox that takes the next message to a key, if it was there already.
    pub(super) fn note_given_up<Q>(&self, key: &Q, ask: Option<AskId>)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some(mailbox) = self.open_mailbox(key) {
            mailbox.note_given_up(ask);
        }
    }

    pub(super) fn open_mailbox<Q>(&self, key: &Q) -> Option<Rc<Mailbox<A>>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let seats = self.seats.borrow();
        let seat = seats.find(hash, |seat| (*seat.key).borrow() == key)?;
        if !seat.mailbox.is_open() {
            return None;
        }
        seat.touched.set(true);
        Some(seat.mailbox.clone())
    }

    /// The mailbox that takes the next message to a key; made if there is none. `None` when all are to stop.
    pub(super) fn mailbox<Q>(
        &self,
        key: &Q,
        flow: u64,
        owned: impl FnOnce() -> Rc<K>,
    ) -> Option<Rc<Mailbox<A>>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.open_mailbox(key).or_else(|| {
            let hash = self.hasher.hash_one(key);
            self.make_instance(hash, &owned(), flow)
        })
    }

    /// Puts a message into the mailbox of a key when it is this sender's turn.
    pub(super) fn poll_push<Q>(
        &self,
        key: &Q,
        (flow, lane): (u64, Lane),
        owned: impl FnOnce() -> Rc<K>,
        place: &mut Place,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> A::Msg,
    ) -> Poll<Result<(), Refused>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(mailbox) = self.mailbox(key, flow, owned) else {
            *place = Place::None;
            return Poll::Ready(Err(Refused::Stopped));
        };
        let number = mailbox.id().number().1;
        let mut ticket = match *place {
            Place::OfInstance(of, _, ticket) if of == number => Some(ticket),
            // The line it stood in was that of an instance which takes no more messages.
            _ => None,
        };
        let sent = mailbox.poll_push(lane, &mut ticket, cx, || build().into());
        *place = match ticket {
            Some(ticket) if sent.is_pending() => Place::OfInstance(number, lane, ticket),
            _ => Place::None,
        };
        sent
    }

    #[cold]
    fn make_instance(&self, hash: u64, key: &Rc<K>, flow: u64) -> Option<Rc<Mailbox<A>>> {
        if self.stopping.borrow().is_some() {
            return None;
        }
        let predecessor = {
            let seats = self.seats.borrow();
            let seat = seats.find(hash, |seat| seat.key == *key);
            seat.map(|seat| seat.mailbox.clone())
        };
        let gate = predecessor.as_ref().and_then(|last| last.until_gone());
        let birth = (self.make)(key.clone());
        let mailbox = life::start_late(async move {
            if let Some(gate) = gate {
                // Nothing is ever sent: the end is the drop of the other side.
                let _ended: Result<(), oneshot::Canceled> = gate.await;
            }
            birth.await
        })?;
        mailbox.set_flow(self.flow(flow));
        let seat = Seat {
            hash,
            key: key.clone(),
            mailbox: mailbox.clone(),
            touched: Cell::new(true),
        };
        let replaced = {
            let mut seats = self.seats.borrow_mut();
            if let Some(last) = seats.find_mut(hash, |seat| seat.key == *key) {
                Some(std::mem::replace(last, seat))
            } else {
                seats.insert_unique(hash, seat, |seat| seat.hash);
                None
            }
        };
        life::contain(|| drop(replaced));
        if let Some(last) = predecessor {
            // From here on only the successor speaks for the flow: one that let it go later would let in what the successor
            // holds back.
            last.let_flow_go();
        }
        let occupant = Occupant {
            keeper: self.me.clone(),
            hash,
            number: mailbox.id().number().1,
        };
        self.set_count(self.count.get() + 1);
        // A mailbox that was made just now is not closed.
        drop(mailbox.own(Box::new(occupant)));
        self.watch(hash, mailbox.id().number().1);
        Some(mailbox)
    }

    /// The flow of a key's messages, from the hash that decided on its shard.
    pub(super) fn flow(&self, hash: u64) -> Flow {
        flow_of(self.id(), hash)
    }

    fn set_count(&self, count: usize) {
        self.count.set(count);
        self.live.set(self.shard, count);
    }

    /// A sender of this shard gives its place in the line of an instance up.
    pub(super) fn leave<Q>(&self, key: &Q, number: u64, lane: Lane, ticket: Ticket)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let mailbox = self.occupant(hash, number);
        // The line of an instance that is gone is gone too.
        if let Some((mailbox, _)) = mailbox {
            mailbox.leave(lane, ticket);
        }
    }

    /// The instance of a number, and whether it was called since the last look.
    pub(super) fn occupant(&self, hash: u64, number: u64) -> Option<(Rc<Mailbox<A>>, bool)> {
        let seats = self.seats.borrow();
        let seat = seats.find(hash, |seat| seat.mailbox.id().number().1 == number)?;
        Some((seat.mailbox.clone(), seat.touched.replace(false)))
    }

    fn stop(&self, ended: oneshot::Sender<()>) {
        let mailboxes: Vec<_> = {
            let seats = self.seats.borrow();
            seats.iter().map(|seat| seat.mailbox.clone()).collect()
        };
        self.stopping
            .borrow_mut()
            .get_or_insert_default()
            .push(ended);
        for mailbox in mailboxes {
            mailbox.stop();
        }
        self.end_if_empty();
    }

    fn end_if_empty(&self) {
        if self.count.get() > 0 || self.stopping.borrow().is_none() {
            return;
        }
        mesh::evict(self.id());
        // Told out of the borrow.
        let told = self.stopping.borrow_mut().replace(Vec::new());
        drop(told);
    }
}

/// The flow of a key's messages to a keeper.
pub(super) fn flow_of<R>(keeper: ResidentId<R>, hash: u64) -> Flow {
    let (_, generation) = keeper.number();
    Flow::of_hash(hash ^ generation.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

impl<K: Hash + Eq + Send + 'static, A: Actor> Resident for Keeper<K, A> {
    type Message = Parcel<K, A>;

    fn deliver(&self, parcel: Parcel<K, A>, origin: Origin) {
        match parcel {
            Parcel::Stop(ended) => self.stop(ended),
            Parcel::GivenUp(key, ask) => {
                self.note_given_up(&key, ask);
                life::contain(|| drop(key));
            }
            Parcel::Message(key, lane, message) => {
                let flow = super::hash_of(&key);
                let (mailbox, spare) = if let Some(mailbox) = self.open_mailbox(&key) {
                    (Some(mailbox), Some(key))
                } else {
                    let hash = self.hasher.hash_one(&key);
                    (self.make_instance(hash, &Rc::new(key), flow), None)
                };
                match mailbox {
                    Some(mailbox) => mailbox.deliver(mailbox::Parcel::of(lane, message), origin),
                    None => dispose::<A>(message.into(), Fate::Stopped),
                }
                // The message is accounted for, whatever becomes of the key.
                life::contain(|| drop(spare));
            }
        }
    }

    fn undeliverable(parcel: Parcel<K, A>) {
        Self::refuse(parcel, Origin::Direct);
    }

    fn refuse(parcel: Parcel<K, A>, origin: Origin) {
        let Parcel::Message(_, _, message) = &parcel else {
            return Self::returned(parcel);
        };
        report_call::<A>(message.carried().method(), DeadLetterReason::Late);
        if let Err(parcel) = origin.send_back::<Self>(parcel) {
            Self::returned(parcel);
        }
    }

    fn returned(parcel: Parcel<K, A>) {
        // The keeper is gone: so are its instances.
        fate::with(Fate::Stopped, || life::contain(|| drop(parcel)));
    }
}

/// Among the belongings of an instance: its seat.
struct Occupant<K: Hash + Eq + Send + 'static, A: Actor> {
    keeper: Weak<Keeper<K, A>>,
    hash: u64,
    number: u64,
}

impl<K: Hash + Eq + Send + 'static, A: Actor> Drop for Occupant<K, A> {
    fn drop(&mut self) {
        let Some(keeper) = self.keeper.upgrade() else {
            return;
        };
        let seat = {
            let mut seats = keeper.seats.borrow_mut();
            let seat = seats.find_entry(self.hash, |seat| {
                seat.mailbox.id().number().1 == self.number
            });
            // A successor may have the seat by now.
            seat.ok().map(|seat| seat.remove().0)
        };
        // With the last of the key, which is the user's.
        life::contain(|| drop(seat));
        keeper.set_count(keeper.count.get() - 1);
        keeper.end_if_empty();
    }
}
