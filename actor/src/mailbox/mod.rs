//! The mailbox: what an actor was sent and has not handled, and the actor itself.
//!
//! # Who may touch it
//! A mailbox lives on its actor's shard and is touched by that thread only: by senders there, by the loop when it
//! delivers what came from elsewhere, and by the actor's own task. No borrow is held while user code runs, but for one:
//! whoever runs a handler borrows the state of the actor until the handler has ended, and this is what makes handlers
//! run one at a time.
//!
//! # Who runs a handler
//! The actor's task, message after message. But if the actor is *idle* (its task waits, the queue is empty, nobody waits
//! in line) a message with a synchronous handler need not go through the queue: an ask of the same shard is handled on
//! the asker's stack, a message of another shard where it arrives. Order is kept because there is nothing to overtake;
//! fairness because both ways are rationed, by the asker's budget and by the turn's.
//!
//! # Order and bound
//! Messages are handled in the order they were accepted. A sender on the shard is accepted while the mailbox holds
//! fewer than its bound; after that senders wait in line. A message from another shard was accepted when it entered the
//! link, so on arrival it always goes in, beyond the bound if need be; the mailbox then *chokes* its shard, which holds
//! further ones back until half of the bound is free. Beyond the bound there is at most what the links held.
//!
//! # Phases
//! ```text
//!  Open ──stop──► Draining ──► Closed          (Open ──kill, panic──► Closed)
//! ```
//! *Draining* refuses new sends, and the stop stands in the queue behind what was accepted before it. *Closed* means
//! the actor is gone: the queue is empty, everyone who waited has been told, and arrivals are undeliverable.

mod admission;
mod at_once;
mod belongings;
mod control;
mod deliver;
mod ending;
mod errands;
mod flow;
mod given_up;
mod life;
mod outside;
mod reading;
mod serve;
mod waits;

pub(crate) use self::outside::{FromOutside, PartFromOutside};
pub(crate) use self::reading::Next;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::task::Waker;

use greenroom_runtime::JoinHandle;
use greenroom_runtime::mesh::{AskId, Flow, Origin, ResidentId, WaitList};

use crate::actor::Actor;
use crate::cycle::Probe;
use crate::errand::Errands;
use crate::life::{Bonds, Control, Restart, Stage, Summonses};

/// What stands in a mailbox.
pub(crate) enum Letter<A: Actor> {
    Message(A::LocalMsg),
    /// Something comes back that the actor has begun itself; what it is lies in this slot of its errands.
    Errand(u32),
    /// Everything before this is handled, nothing after it.
    Stop,
}

/// What travels to a mailbox.
#[doc(hidden)]
pub enum Parcel<A: Actor> {
    Message(A::Msg),
    Stop,
    Kill,
    /// What concerns its life only.
    Control(Box<Control>),
    /// Nobody waits for an answer any more. Which, if its slot is on another shard.
    GivenUp(Option<AskId>),
    /// What does its handler wait for?
    Probe(Box<Probe>),
}

impl<A: Actor> std::fmt::Debug for Parcel<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Message(_) => "Message",
            Self::Stop => "Stop",
            Self::Kill => "Kill",
            Self::Control(_) => "Control",
            Self::GivenUp(_) => "GivenUp",
            Self::Probe(_) => "Probe",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Draining,
    Closed,
}

/// What the actor is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// Its task waits for a letter. Invariant: the queue is empty, and no handler runs.
    Idle,
    /// Its task waits for a letter, and for readers, which have the state. Invariant: the queue is empty.
    Reading,
    /// Its task is ready, or runs, or waits for something inside of a handler.
    Busy,
    /// One of its asynchronous handlers is being polled: whoever sends now is the actor itself.
    Polling,
    /// A handler runs on the stack of its asker; its task waits.
    AtOnce,
}

/// An actor and its mailbox.
#[doc(hidden)]
pub struct Mailbox<A: Actor> {
    /// The actor itself, until it ends. Borrowed by whoever runs a handler, for as long as the handler runs.
    state: RefCell<Option<A>>,
    queue: RefCell<VecDeque<Letter<A>>>,
    phase: Cell<Phase>,
    activity: Cell<Activity>,
    stage: Cell<Stage>,
    /// What takes it away from its messages.
    summonses: Summonses,
    /// When another incarnation follows one.
    restart: Cell<Restart>,
    has_parent: Cell<bool>,
    /// The time in which it is to stop runs.
    has_grace: Cell<bool>,
    /// Its key in the registry.
    key: Cell<u32>,
    /// The method whose asynchronous handler runs.
    handling: Cell<Option<&'static &'static str>>,
    /// When that handler first had to wait, in milliseconds of its shard; zero if it did not have to.
    waits_since_ms: Cell<u32>,
    /// The actor's task, once it was polled.
    waker: OnceCell<Waker>,
    /// For `kill`; taken out when the actor ends.
    task: Cell<Option<JoinHandle<()>>>,
    id: OnceCell<ResidentId<Mailbox<A>>>,
    /// Room that comes free is to be made known: to a front of the line that was not called yet, or to a choked shard.
    room_wanted: Cell<bool>,
    /// Askers have given up while their messages may be in the queue.
    looks_first: Cell<bool>,
    /// A call that its handler waits for, and perhaps for others; zero for none.
    waits_on: Cell<u64>,
    /// Listed among those whose handlers wait.
    is_suspect: Cell<bool>,
    /// Its handler is to find out what it waits for: because somebody asks, or to ask around itself.
    is_asked: Cell<bool>,
    asks_around: Cell<bool>,
    /// Senders on this shard that wait for room, and everything else that is seldom used. Made when first needed.
    rare: OnceCell<Box<Rare<A>>>,
}

struct Rare<A: Actor> {
    waiting: WaitList,
    choked: RefCell<Vec<Origin>>,
    /// Asks of other shards that were given up.
    given_up: RefCell<BTreeSet<AskId>>,
    /// Who asks what the handler waits for.
    probes: RefCell<waits::Probes>,
    belongings: belongings::Belongings,
    /// What its messages from other shards are a part of, if they come by the key of the actor.
    flow: Cell<Option<Flow>>,
    /// Why the actor did not start.
    cause: Cell<Option<Box<str>>>,
    bonds: OnceCell<Box<Bonds>>,
    errands: OnceCell<Rc<Errands<A>>>,
}

impl<A: Actor> Default for Rare<A> {
    fn default() -> Self {
        Self {
            waiting: WaitList::default(),
            choked: RefCell::default(),
            given_up: RefCell::default(),
            probes: RefCell::default(),
            belongings: belongings::Belongings::default(),
            flow: Cell::default(),
            cause: Cell::default(),
            bonds: OnceCell::new(),
            errands: OnceCell::new(),
        }
    }
}

impl<A: Actor> std::fmt::Debug for Mailbox<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox")
            .field("actor", &A::NAME)
            .field("phase", &self.phase.get())
            .finish_non_exhaustive()
    }
}

impl<A: Actor> Mailbox<A> {
    pub(crate) fn new(actor: Option<A>) -> Self {
        Self {
            state: RefCell::new(actor),
            queue: RefCell::new(VecDeque::new()),
            phase: Cell::new(Phase::Open),
            activity: Cell::new(Activity::Busy),
            stage: Cell::new(Stage::Starting),
            summonses: Summonses::default(),
            restart: Cell::new(Restart::Never),
            has_parent: Cell::new(false),
            has_grace: Cell::new(false),
            key: Cell::new(0),
            handling: Cell::new(None),
            waits_since_ms: Cell::new(0),
            waker: OnceCell::new(),
            task: Cell::new(None),
            id: OnceCell::new(),
            room_wanted: Cell::new(false),
            looks_first: Cell::new(false),
            waits_on: Cell::new(0),
            is_suspect: Cell::new(false),
            is_asked: Cell::new(false),
            asks_around: Cell::new(false),
            rare: OnceCell::new(),
        }
    }

    /// Tells the mailbox its name, before anything can be sent to it.
    pub(crate) fn install(&self, id: ResidentId<Self>) {
        self.id.set(id).expect("a mailbox is settled once");
    }

    pub(crate) fn set_task(&self, task: JoinHandle<()>) {
        self.task.set(Some(task));
    }

    pub(crate) fn id(&self) -> ResidentId<Self> {
        *self
            .id
            .get()
            .expect("a mailbox is settled before its actor runs")
    }

    fn rare(&self) -> &Rare<A> {
        self.rare.get_or_init(Box::default)
    }
}

/// Puts a mailbox into the shard's tables; that of an actor which is yet to be made, if there is none.
pub(crate) fn settle<A: Actor>(actor: Option<A>) -> Rc<Mailbox<A>> {
    let mailbox = Rc::new(Mailbox::new(actor));
    let id = greenroom_runtime::mesh::settle(mailbox.clone());
    mailbox.install(id);
    mailbox
}
