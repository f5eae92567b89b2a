//! A shard: one pinned thread with its own run queue, timers, I/O driver and memory.
//!
//! Everything a [`Shard`] holds is touched by its own thread only, except what it shares on purpose: its
//! [`registry::SharedShard`] and the rings of its [`Team`]. No field stays borrowed while user code runs (a poll, a
//! drop, a waker): fields are cells, sections that borrow them are short, and values to drop go to the `graveyard`.
//!
//! Reading order: [`id`], [`context`], [`registry`], this file's [`Shard::run`], [`park`], [`teardown`], and what others
//! ask of a shard: [`services`], [`counts`].

pub(crate) mod context;
mod counts;
mod id;
mod park;
pub(crate) mod registry;
mod services;
mod teardown;

pub use counts::{ShardCounts, current_shard, extension};
pub(crate) use id::SHARD_NUMBER_COUNT;
pub use id::ShardId;
pub(crate) use id::ShardNumber;

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use self::registry::Lease;
use crate::clock::Clock;
use crate::error::StartErrorKind;
use crate::mesh::link::Link;
use crate::mesh::record::{self, Arrival};
use crate::mesh::reply::Replies;
use crate::mesh::resident::Residents;
use crate::mesh::ring::Consumer;
use crate::mesh::team::Team;
use crate::ring::{Driver, Effects, RingConfig, Wait};
use crate::rng::Rng;
use crate::sys;
use crate::task::coop::Budget;
use crate::task::{Id, TaskRef, Tasks, discard_payload, task_waker};
use crate::time::Timers;

/// Time a turn gives to tasks.
const TURN_NS: u64 = 200_000;
/// Polls between two looks at the clock.
const POLLS_PER_CLOCK: usize = 32;
/// Tasks run in one turn before timers, peers and the kernel are looked at again.
const TASKS_PER_TURN: usize = 256;
/// Records taken from one peer in one turn.
const RECORDS_PER_TURN: usize = 1024;
/// A busy shard enters the kernel at least every so many turns, so that completions are not starved by ready tasks.
const TURNS_PER_ENTER: u32 = 8;

/// What one shard is made of. `!Send`, and never moved to another thread.
pub(crate) struct Shard {
    id: ShardId,
    lease: Lease,
    team: Arc<Team>,
    /// Invariant: `Some` until the shard is dropped.
    doorbell: Option<OwnedFd>,
    /// A claimed ring never came: the descriptor must stay open.
    doorbell_leaked: Cell<bool>,
    /// Rings of the doorbell that peers claimed, see [`registry::SharedShard`].
    rings_owed: Cell<u64>,
    /// Rings read from the doorbell outside the driver, during teardown.
    rings_received: Cell<u64>,
    tasks: RefCell<Tasks>,
    /// The task whose code runs.
    running: Cell<Option<Id>>,
    /// Of the task that runs.
    budget: Budget,
    /// Tasks that yielded, to be ready again at the end of the turn.
    yielded: RefCell<Vec<Waker>>,
    timers: RefCell<Timers>,
    driver: RefCell<Driver>,
    links: Box<[RefCell<Link>]>,
    /// Peers with something to publish, or with someone waiting for room.
    touched: RefCell<Vec<ShardId>>,
    residents: RefCell<Residents>,
    replies: RefCell<Replies>,
    graveyard: RefCell<Vec<Rc<dyn Any>>>,
    /// State of the layers above, one value per type.
    extensions: RefCell<Vec<(TypeId, Rc<dyn Any>)>>,
    generation: Cell<u64>,
    /// Where the count stood when this shard took the number over.
    first_generation: u64,
    clock: Clock,
    /// The clock as read at the start of the turn.
    now_ns: Cell<u64>,
    rng: Rng,
    spin: Duration,
    /// New tasks are refused.
    closing: Cell<bool>,
    reported_quiet: Cell<bool>,
    /// Records were left in a ring at the end of its share of the turn.
    unfinished: Cell<bool>,
    stray_panics: Cell<u64>,
    /// Visits to the kernel.
    enters: Cell<u64>,
}

/// What a shard needs to know to be made.
pub(crate) struct ShardConfig {
    pub(crate) id: ShardId,
    pub(crate) team: Arc<Team>,
    pub(crate) ring: RingConfig,
    pub(crate) seed: u64,
    pub(crate) spin: Duration,
}

/// The receiving ends of a shard's rings, held by its loop alone.
pub(crate) type Inbound = Vec<Option<Consumer>>;

impl Shard {
    /// Makes the shard of the calling thread.
    pub(crate) fn new(config: ShardConfig, lease: Lease) -> Result<Self, StartErrorKind> {
        let mut driver = Driver::new(&config.ring).map_err(StartErrorKind::Backend)?;
        let doorbell = sys::new_doorbell().map_err(StartErrorKind::Doorbell)?;
        driver.arm_doorbell(doorbell.as_raw_fd());
        let generation = lease.shared().open(doorbell.as_raw_fd());
        let links = (0..config.team.len()).map(|peer| {
            let peer = u16::try_from(peer).expect("a runtime has at most 1024 shards");
            RefCell::new(Link::new(ShardId::from(peer)))
        });
        let clock = Clock::Monotonic;
        let now_ns = clock.now_ns();
        Ok(Self {
            id: config.id,
            links: links.collect(),
            team: config.team,
            doorbell: Some(doorbell),
            doorbell_leaked: Cell::new(false),
            rings_owed: Cell::new(0),
            rings_received: Cell::new(0),
            tasks: RefCell::new(Tasks::new()),
            running: Cell::new(None),
            budget: Budget::new(),
            yielded: RefCell::default(),
            timers: RefCell::new(Timers::new(now_ns)),
            driver: RefCell::new(driver),
            touched: RefCell::default(),
            residents: RefCell::default(),
            replies: RefCell::new(Replies::new()),
            graveyard: RefCell::default(),
            extensions: RefCell::default(),
            generation: Cell::new(generation),
            first_generation: generation,
            now_ns: Cell::new(now_ns),
            clock,
            rng: Rng::new(config.seed ^ u64::from(lease.number().index()).rotate_left(32)),
            lease,
            spin: config.spin,
            closing: Cell::new(false),
            reported_quiet: Cell::new(false),
            unfinished: Cell::new(false),
            stray_panics: Cell::new(0),
            enters: Cell::new(0),
        })
    }

    /// The loop: turns until the team is asked to stop.
    pub(crate) fn run(&self, inbound: &mut Inbound, effects: &mut Effects) {
        let mut turns_since_enter = 0;
        while !self.team.is_stopping() {
            self.now_ns.set(self.clock.now_ns());
            self.take_inbound(inbound);
            self.fire_timers();
            self.run_tasks();
            // Before the publish: what a destructor sends leaves with this turn.
            self.bury_all();
            self.publish();
            if self.tasks.borrow().ready_len() == 0 && !self.unfinished.get() {
                turns_since_enter = 0;
                self.park(effects);
            } else {
                turns_since_enter += 1;
                if turns_since_enter >= TURNS_PER_ENTER || self.driver.borrow().needs_enter() {
                    turns_since_enter = 0;
                    self.enter(Wait::Poll, effects);
                }
            }
        }
    }

    /// Takes what other threads sent: wakes, jobs, then the rings of the peers, each bounded.
    fn take_inbound(&self, inbound: &mut Inbound) {
        let news = self.shared().handshake.take_pending();
        if !news && !self.unfinished.get() {
            return;
        }
        {
            let mut tasks = self.tasks.borrow_mut();
            self.shared().wakes.drain(|slot| tasks.wake_slot(slot));
        }
        for job in self.shared().jobs.take_all() {
            self.contain(job);
        }
        let mut more = false;
        for (from, consumer) in (0_u16..).map(ShardId::from).zip(inbound.iter_mut()) {
            more |= self.take_from(from, consumer);
        }
        self.unfinished.set(more);
    }

    /// Takes records of one peer; true if some were left.
    fn take_from(&self, from: ShardId, consumer: &mut Option<Consumer>) -> bool {
        if consumer.is_none() {
            *consumer = self
                .team
                .ring(from, self.id)
                .map(|ring| Consumer::new(ring.clone()));
        }
        let Some(consumer) = consumer else {
            return false;
        };
        let arrival = Arrival { shard: self, from };
        let drained = record::drain(consumer, RECORDS_PER_TURN, &arrival);
        if drained.sender_wants_room {
            self.team.shared(from).notify();
        }
        drained.count == RECORDS_PER_TURN
    }

    fn fire_timers(&self) {
        let now_ns = self.now_ns.get();
        loop {
            let waker = self.timers.borrow_mut().pop_due(now_ns);
            let Some(waker) = waker else { return };
            // A waker may be anybody's.
            self.contain(|| waker.wake());
        }
    }

    /// Polls ready tasks, those that become ready meanwhile included, until none is left or the turn has had its share.
    fn run_tasks(&self) {
        for polled in 1..=TASKS_PER_TURN {
            let Some(task) = self.tasks.borrow_mut().pop_ready() else {
                break;
            };
            self.run_task(task);
            if polled % POLLS_PER_CLOCK == 0 && self.clock.now_ns() - self.now_ns.get() > TURN_NS {
                break;
            }
        }
        self.budget.lift();
        // Tasks that yielded are ready again, but not before timers, peers and the kernel had their turn.
        let mut yielded = std::mem::take(&mut *self.yielded.borrow_mut());
        for waker in yielded.drain(..) {
            self.contain(|| waker.wake());
        }
        let mut unused = self.yielded.borrow_mut();
        if unused.is_empty() {
            *unused = yielded;
        }
    }

    fn run_task(&self, mut task: TaskRef) {
        let waker = task_waker(task.id());
        self.budget.refill();
        self.running.set(Some(task.unique_id()));
        let ended = task.poll(&mut Context::from_waker(&waker));
        self.running.set(None);
        if ended {
            return self.end(task);
        }
        let aborted = self.tasks.borrow_mut().give_back(task);
        if let Some(task) = aborted {
            self.cancel(task);
        }
    }

    /// Makes everything this turn wrote visible to its peers, with one notice each.
    fn publish(&self) {
        if self.touched.borrow().is_empty() {
            return;
        }
        let peers = std::mem::take(&mut *self.touched.borrow_mut());
        for &peer in &peers {
            if self.publish_link(peer) {
                // Stays in the list, and is not woken for nothing: the reader says when there is room.
                self.touch(peer);
            }
        }
        // The vector's memory is kept for the next turn.
        let mut touched = self.touched.borrow_mut();
        let again = std::mem::replace(&mut *touched, peers);
        touched.clear();
        touched.extend(again);
    }

    /// Drops evicted residents; their drops may evict more.
    fn bury_all(&self) {
        if self.graveyard.borrow().is_empty() {
            return;
        }
        loop {
            let Some(body) = self.graveyard.borrow_mut().pop() else {
                return;
            };
            self.contain(|| drop(body));
        }
    }

    /// Runs a piece of code that may run user code; a panic in it ends neither the turn nor the shard.
    pub(crate) fn contain(&self, code: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
            self.count_stray_panic();
            discard_payload(payload);
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        if self.doorbell_leaked.get() {
            // Kept open on purpose: only its number is given up.
            let _kept_open: Option<RawFd> = self.doorbell.take().map(IntoRawFd::into_raw_fd);
        }
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("id", &self.id)
            .field("number", &self.number())
            .finish_non_exhaustive()
    }
}
