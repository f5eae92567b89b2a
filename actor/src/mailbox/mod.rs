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
//! # Lanes
//! | lane | what it takes | room |
//! |---|---|---|
//! | control | stops, kills, watches: acted on where they arrive, also while a handler waits | needs none |
//! | urgent | messages that were sent so | 16 |
//! | normal | all others | the bound of the mailbox |
//!
//! The actor takes its next message from the first lane that has one. Each lane is first in, first out; nothing is
//! promised between them.
//!
//! # Order and bound
//! Messages of a lane are handled in the order they were accepted. A sender on the shard is accepted while the lane holds
//! fewer than its bound; after that senders wait in line, one line for each lane. A message from another shard was
//! accepted when it entered the link, so on arrival it always goes in, beyond the bound if need be; the mailbox then
//! *chokes* that lane for its shard, which holds further ones back until half of the bound is free. Beyond the bound
//! there is at most what the links held. Actors that do not want senders to wait say so, see [`overflow`].
//!
//! # Phases
//! ```text
//!  Open ──stop──► Draining ──► Closed          (Open ──kill, panic──► Closed)
//! ```
//! *Draining* refuses new sends, and the stop stands in the normal lane behind what was accepted before it; one that is
//! not to wait stands in front of the urgent lane. *Closed* means the actor is gone: the lanes are empty, everyone who
//! waited has been told, and arrivals are undeliverable.

mod admission;
mod at_once;
mod batch;
mod belongings;
mod control;
mod deliver;
mod ending;
mod errands;
mod flow;
mod given_up;
mod inspect;
mod life;
mod outside;
mod overflow;
mod reading;
mod serve;
mod waits;

pub(crate) use self::outside::{FromOutside, PartFromOutside};
pub(crate) use self::reading::Next;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::task::Waker;

use greenroom_runtime::JoinHandle;
use greenroom_runtime::mesh::{AskId, Fifo, Flow, Lane, Origin, ResidentId, WaitList};

use crate::actor::Actor;
use crate::cycle::Probe;
use crate::errand::Errands;
use crate::life::{Bonds, Control, Restart, Stage, Summonses};
use crate::observe::Tally;
use crate::reply::Carries;

/// How many urgent messages a mailbox has room for, unless it is unbounded.
pub(crate) const URGENT_ROOM: usize = 16;

/// What stands in a lane.
pub(crate) enum Letter<A: Actor> {
    Message(A::LocalMsg),
    /// Something comes back that the actor has begun itself; what it is lies in this slot of its errands.
    Errand(u32),
    /// Everything before this is handled, nothing after it.
    Stop,
}

impl<A: Actor> Letter<A> {
    /// The ask that it is, of a shard.
    fn ask(&self) -> Option<AskId> {
        match self {
            Self::Message(message) => message.carried().reply().note()?.ask(),
            Self::Stop | Self::Errand(_) => None,
        }
    }
}

/// What travels to a mailbox.
#[doc(hidden)]
pub enum Parcel<A: Actor> {
    Message(A::Msg),
    Urgent(A::Msg),
    Stop,
    Kill,
    /// What concerns its life only.
    Control(Box<Control>),
    /// Nobody waits for an answer any more. Which, if its slot is on another shard.
    GivenUp(Option<AskId>),
    /// What does its handler wait for?
    Probe(Box<Probe>),
}

impl<A: Actor> Parcel<A> {
    #[inline]
    pub(crate) fn of(lane: Lane, message: A::Msg) -> Self {
        match lane {
            Lane::Normal => Self::Message(message),
            Lane::Urgent => Self::Urgent(message),
        }
    }
}

impl<A: Actor> std::fmt::Debug for Parcel<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Message(_) => "Message",
            Self::Urgent(_) => "Urgent",
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
    /// Its task waits for a message. Invariant: there is no news (see `has_news`), and no handler runs.
    Idle,
    /// Its task waits for a letter, and for readers, which have the state. Invariant: there is no news.
    Reading,
    /// Its task waits for an urgent letter, and for readers, for which the letter in front has to wait.
    Held,
    /// Its task is ready, or runs, or waits for something inside of a handler.
    Busy,
    /// One of its asynchronous handlers is being polled: whoever sends now is the actor itself.
    Polling,
    /// A handler runs on the stack of its asker; its task waits.
    AtOnce,
}

/// What whoever takes the next message has to look at before the normal lane. Empty for a mailbox in plain use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Notices(u8);

impl Notices {
    /// There is something in the urgent lane.
    const URGENT: Self = Self(1);
    /// Room that comes free in the normal lane is to be made known: to a front of the line that was not called yet, or
    /// to a choked shard.
    const ROOM: Self = Self(2);
    /// The same for the urgent lane.
    const URGENT_ROOM: Self = Self(4);
    /// Askers have given up while their messages may be in a lane.
    const GIVEN_UP: Self = Self(8);

    fn room(lane: Lane) -> Self {
        match lane {
            Lane::Normal => Self::ROOM,
            Lane::Urgent => Self::URGENT_ROOM,
        }
    }

    #[inline]
    fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    fn has(self, notice: Self) -> bool {
        self.0 & notice.0 != 0
    }
}

/// An actor and its mailbox.
#[doc(hidden)]
pub struct Mailbox<A: Actor> {
    /// The actor itself, until it ends. Borrowed by whoever runs a handler, for as long as the handler runs.
    state: RefCell<Option<A>>,
    /// The normal lane.
    queue: RefCell<Fifo<Letter<A>>>,
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
    /// How many messages that handler has besides the one it began with.
    beside: Cell<u32>,
    /// Of all actors of its type.
    tally: Rc<Tally>,
    /// Of the actor's task.
    waker: OnceCell<Waker>,
    /// For `kill`; taken out when the actor ends.
    task: Cell<Option<JoinHandle<()>>>,
    id: OnceCell<ResidentId<Mailbox<A>>>,
    /// A call that its handler waits for, and perhaps for others; zero for none.
    waits_on: Cell<u64>,
    /// Listed among those whose handlers wait.
    is_suspect: Cell<bool>,
    /// Its handler is to find out what it waits for: because somebody asks, or to ask around itself.
    is_asked: Cell<bool>,
    asks_around: Cell<bool>,
    notices: Cell<Notices>,
    /// The urgent lane, and everything else that is seldom used. Made when first needed.
    rare: OnceCell<Box<Rare<A>>>,
}

struct Rare<A: Actor> {
    urgent: RefCell<Fifo<Letter<A>>>,
    lines: [Line; Lane::COUNT],
    /// Asks of other shards that were given up.
    given_up: RefCell<BTreeSet<AskId>>,
    /// Who asks what the handler waits for.
    probes: RefCell<waits::Probes>,
    /// Asks of the messages that the handler has besides its own.
    owed: RefCell<Vec<AskId>>,
    /// Its concurrent handlers that run.
    readers: reading::Seats,
    /// The time that its handlers take is measured.
    is_timed: Cell<bool>,
    /// What a snapshot is to show of the handler that has the actor for itself.
    shown: RefCell<inspect::Shown>,
    belongings: belongings::Belongings,
    /// What its messages from other shards are a part of, if they come by the key of the actor.
    flow: Cell<Option<Flow>>,
    /// Why the actor did not start.
    cause: Cell<Option<Box<str>>>,
    bonds: OnceCell<Box<Bonds>>,
    errands: OnceCell<Rc<Errands<A>>>,
}

impl<A: Actor> Rare<A> {
    /// Whether nobody stands in line, for any lane.
    fn nobody_waits(&self) -> bool {
        self.lines.iter().all(|line| line.waiting.is_empty())
    }
}

impl<A: Actor> Default for Rare<A> {
    fn default() -> Self {
        Self {
            urgent: RefCell::default(),
            lines: Default::default(),
            given_up: RefCell::default(),
            probes: RefCell::default(),
            owed: RefCell::default(),
            readers: reading::Seats::default(),
            is_timed: Cell::new(false),
            shown: RefCell::default(),
            belongings: belongings::Belongings::default(),
            flow: Cell::default(),
            cause: Cell::default(),
            bonds: OnceCell::new(),
            errands: OnceCell::new(),
        }
    }
}

/// Who is kept from sending into a lane.
#[derive(Debug, Default)]
struct Line {
    /// Senders on this shard, and those outside of the system.
    waiting: WaitList,
    /// Shards that were told to hold theirs back.
    choked: RefCell<Vec<Origin>>,
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
    pub(crate) fn new(actor: Option<A>, tally: Rc<Tally>) -> Self {
        Self {
            state: RefCell::new(actor),
            queue: RefCell::new(Fifo::default()),
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
            beside: Cell::new(0),
            tally,
            waker: OnceCell::new(),
            task: Cell::new(None),
            id: OnceCell::new(),
            waits_on: Cell::new(0),
            is_suspect: Cell::new(false),
            is_asked: Cell::new(false),
            asks_around: Cell::new(false),
            notices: Cell::default(),
            rare: OnceCell::new(),
        }
    }

    /// Tells the mailbox its name, before anything can be sent to it.
    pub(crate) fn install(&self, id: ResidentId<Self>) {
        const {
            assert!(
                A::MAILBOX > 0,
                "`mailbox` is 0: a mailbox needs room for at least one message"
            );
        }
        self.id.set(id).expect("a mailbox is settled once");
    }

    pub(crate) fn set_task(&self, task: JoinHandle<()>, waker: Waker) {
        self.task.set(Some(task));
        self.waker.set(waker).expect("an actor has one task");
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

    fn line(&self, lane: Lane) -> &Line {
        &self.rare().lines[lane.index()]
    }

    #[inline]
    fn lane(&self, lane: Lane) -> &RefCell<Fifo<Letter<A>>> {
        match lane {
            Lane::Normal => &self.queue,
            Lane::Urgent => &self.rare().urgent,
        }
    }

    /// How many letters there are in both lanes.
    fn len(&self) -> usize {
        let urgent = self.rare.get().map(|rare| rare.urgent.borrow().len());
        self.queue.borrow().len() + urgent.unwrap_or_default()
    }

    /// How many messages a lane has room for.
    #[inline]
    fn room(lane: Lane) -> usize {
        match lane {
            Lane::Urgent if A::MAILBOX < usize::MAX => URGENT_ROOM,
            _ => A::MAILBOX,
        }
    }

    #[inline]
    fn note(&self, notice: Notices) {
        self.notices.set(Notices(self.notices.get().0 | notice.0));
    }

    fn unnote(&self, notice: Notices) {
        self.notices.set(Notices(self.notices.get().0 & !notice.0));
    }
}

/// Puts a mailbox into the shard's tables; that of an actor which is yet to be made, if there is none.
pub(crate) fn settle<A: Actor>(actor: Option<A>, tally: Rc<Tally>) -> Rc<Mailbox<A>> {
    // Built where it stays: `Rc::new` would build it on the stack, and copy it.
    let mailbox = Rc::new_cyclic(|_| Mailbox::new(actor, tally));
    if mailbox.tally.is_timed() {
        mailbox.rare().is_timed.set(true);
    }
    let id = greenroom_runtime::mesh::settle(mailbox.clone());
    mailbox.install(id);
    mailbox
}
