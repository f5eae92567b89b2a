//! A shard: one pinned thread with its own run queue, timers, I/O driver and memory.
//!
//! Everything a [`Shard`] holds is touched by its own thread only, except what it shares on purpose: its
//! [`registry::SharedShard`] and the rings of its [`Team`]. No field stays borrowed while user code runs (a poll, a
//! drop, a waker): fields are cells, sections that borrow them are short, and values to drop go to the `graveyard`.
//!
//! Reading order: [`id`], [`context`], [`registry`], [`turn`], [`pace`], [`ration`], [`park`], [`spin`], [`gather`], [`cancels`],
//! [`drain`], [`teardown`], and what others ask of a shard: [`services`], [`counts`], [`metrics`].

mod cancels;
pub(crate) mod context;
mod counts;
mod drain;
mod gather;
mod id;
mod metrics;
mod pace;
mod park;
mod ration;
pub(crate) mod registry;
mod services;
pub(crate) mod spin;
mod teardown;
mod turn;

pub use counts::{ShardCounts, current_shard, extension};
pub(crate) use id::SHARD_NUMBER_COUNT;
pub use id::ShardId;
pub(crate) use id::ShardNumber;
pub use metrics::ShardMetrics;

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crossbeam_deque::Worker;

use self::cancels::Cancels;
use self::drain::Draining;
use self::gather::Gather;
use self::metrics::Counters;
use self::pace::Pace;
use self::ration::Ration;
use self::registry::{Job, Lease};
use self::spin::{Spin, Watch};
use crate::clock::Clock;
use crate::error::StartErrorKind;
use crate::float::board::Work;
use crate::float::lane::Lane;
use crate::inject::queue::Drain;
use crate::mesh::at_once::Frames;
use crate::mesh::link::Link;
use crate::mesh::reply::Replies;
use crate::mesh::resident::Residents;
use crate::mesh::ring::Consumer;
use crate::mesh::team::Team;
use crate::observe::hooks::Hooks;
use crate::observe::pulse::Pulse;
use crate::observe::trace;
use crate::ring::{AnyBackend, Driver, RingConfig};
use crate::rng::Rng;
use crate::sys;
use crate::task::coop::Budget;
use crate::task::{Id, Tasks, discard_payload};
use crate::time::{Alarm, Timers};

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
    cancels: Cancels,
    /// Of the task that runs.
    budget: Budget,
    /// Tasks that yielded, to be ready again at the end of the turn.
    yielded: RefCell<Vec<Waker>>,
    timers: RefCell<Timers>,
    driver: RefCell<Driver>,
    links: Box<[RefCell<Link>]>,
    /// This shard's end of the float lane.
    float: Lane,
    hooks: Option<Box<Hooks>>,
    /// The span of the task that is polled.
    traced: trace::Current,
    /// What others see of this shard while it is busy, if anyone watches.
    pulse: Option<Arc<Pulse>>,
    /// Peers with something to publish, or with someone waiting for room.
    touched: RefCell<Vec<ShardId>>,
    residents: RefCell<Residents>,
    replies: RefCell<Replies>,
    /// Rings when the first slot is overdue.
    reply_alarm: Alarm,
    /// How long answers are waited for where nothing else is said.
    reply_limit: Option<Duration>,
    /// Jobs that were taken from the injector and did not get their turn yet.
    jobs_begun: RefCell<Drain<Job>>,
    /// Askers on the stack.
    frames: Frames,
    /// For messages that are handled where they arrive.
    arrivals: Ration,
    graveyard: RefCell<Vec<Rc<dyn Any>>>,
    /// State of the layers above, one value per type.
    extensions: RefCell<Vec<(TypeId, Rc<dyn Any>)>>,
    generation: Cell<u64>,
    /// Where the count stood when this shard took the number over.
    first_generation: u64,
    clock: Clock,
    /// The clock as read in this turn, after what came in was taken.
    now_ns: Cell<u64>,
    pace: Pace,
    rng: Rng,
    spin: Spin,
    /// The peers that sent something here last, and that something was sent to last.
    heard_from: Cell<Option<ShardId>>,
    told: Cell<Option<ShardId>>,
    gather: Gather,
    /// New tasks are refused.
    closing: Cell<bool>,
    draining: Cell<Draining>,
    /// Records were left in a ring at the end of its share of the turn.
    unfinished: Cell<bool>,
    counters: Counters,
}

/// What a shard needs to know to be made.
pub(crate) struct ShardConfig {
    pub(crate) id: ShardId,
    pub(crate) team: Arc<Team>,
    /// This shard's end of the float lane.
    pub(crate) lane: Worker<Work>,
    pub(crate) ring: RingConfig,
    pub(crate) seed: u64,
    pub(crate) watch: Watch,
    pub(crate) gather: Duration,
    pub(crate) reply_limit: Option<Duration>,
    pub(crate) lifo_slot: bool,
    pub(crate) hooks: Option<Box<Hooks>>,
}

/// The receiving ends of a shard's rings, held by its loop alone.
pub(crate) type Inbound = Vec<Option<Consumer>>;

impl Shard {
    /// Makes the shard of the calling thread.
    pub(crate) fn new(
        config: ShardConfig,
        backend: AnyBackend,
        lease: Lease,
    ) -> Result<Self, StartErrorKind> {
        let mut driver = Driver::new(backend, config.ring.pool);
        let doorbell = sys::new_doorbell().map_err(StartErrorKind::Doorbell)?;
        driver.arm_doorbell(doorbell.as_raw_fd());
        let generation = lease.shared().open(doorbell.as_raw_fd());
        let peers = config.team.shards();
        let links = peers.map(|peer| RefCell::new(Link::new(peer)));
        let mut tasks = Tasks::new();
        if !config.lifo_slot {
            tasks.forgo_slot();
        }
        let pulse = config.team.pulse(config.id).cloned();
        if let Some(pulse) = &pulse {
            pulse.set_thread(sys::thread_id());
        }
        let clock = Clock::Monotonic;
        let now_ns = clock.now_ns();
        Ok(Self {
            id: config.id,
            links: links.collect(),
            float: Lane::new(config.lane),
            hooks: config.hooks,
            traced: trace::Current::new(),
            pulse,
            team: config.team,
            doorbell: Some(doorbell),
            doorbell_leaked: Cell::new(false),
            rings_owed: Cell::new(0),
            rings_received: Cell::new(0),
            tasks: RefCell::new(tasks),
            running: Cell::new(None),
            cancels: Cancels::default(),
            budget: Budget::new(),
            yielded: RefCell::default(),
            timers: RefCell::new(Timers::new(now_ns)),
            driver: RefCell::new(driver),
            touched: RefCell::default(),
            residents: RefCell::default(),
            replies: RefCell::new(Replies::new()),
            reply_alarm: Alarm::new(),
            reply_limit: config.reply_limit,
            jobs_begun: RefCell::new(Drain::empty()),
            frames: Frames::new(),
            arrivals: Ration::default(),
            graveyard: RefCell::default(),
            extensions: RefCell::default(),
            generation: Cell::new(generation),
            first_generation: generation,
            now_ns: Cell::new(now_ns),
            pace: Pace::new(),
            clock,
            // By its place in the runtime, so that a seed means the same in every runtime of the process.
            rng: Rng::new(config.seed ^ (config.id.index() as u64).rotate_left(32)),
            lease,
            spin: Spin::new(config.watch),
            heard_from: Cell::default(),
            told: Cell::default(),
            gather: Gather::new(config.gather),
            closing: Cell::new(false),
            draining: Cell::default(),
            unfinished: Cell::new(false),
            counters: Counters::default(),
        })
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
