//! Every knob of a runtime: what it means, its default, its bounds.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::blocking::pool::PoolConfig;
use crate::error::StartError;
use crate::launch;
use crate::observe::hooks::Hooks;
use crate::observe::watchdog::StallHook;
use crate::ring::{Backend, RingConfig};
use crate::runtime::Runtime;
use crate::shard::ShardId;

/// The longest window that makes sense: beyond it a sleep and a wake-up are nothing.
pub(crate) const GATHER_MAX: Duration = Duration::from_millis(10);
/// Less does not hold what a shard itself needs; more is a mistake.
pub(crate) const STACK_BYTES: RangeInclusive<usize> = 64 * 1024..=1 << 30;

/// Collects what a runtime should be like, then starts it.
///
/// # Examples
/// ```
/// use greenroom_runtime::Builder;
/// let runtime = Builder::new().shards(2).thread_name("cache").start()?;
/// assert_eq!(runtime.shard_count(), 2);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    pub(crate) shards: Option<usize>,
    pub(crate) pin: bool,
    pub(crate) thread_name: String,
    pub(crate) stack_bytes: Option<usize>,
    pub(crate) backend: Backend,
    pub(crate) ring: RingConfig,
    pub(crate) recv_buffers: usize,
    pub(crate) recv_buffer_bytes: usize,
    pub(crate) link_bytes: usize,
    pub(crate) reply_limit: Option<Duration>,
    pub(crate) spin: Option<Duration>,
    pub(crate) gather: Duration,
    pub(crate) lifo_slot: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) float_lane: bool,
    pub(crate) blocking: PoolConfig,
    pub(crate) shutdown_limit: Duration,
    pub(crate) on_shard_start: Option<StartHook>,
    pub(crate) hooks: Hooks,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) on_stall: Option<StallHook>,
}

/// Called on each shard before any of them runs.
pub(crate) type StartHook = Arc<dyn Fn(ShardId) + Send + Sync>;

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// The defaults: one pinned shard per CPU this process may use.
    pub fn new() -> Self {
        Self {
            shards: None,
            pin: true,
            thread_name: "shard".to_owned(),
            stack_bytes: None,
            backend: Backend::Auto,
            ring: RingConfig::default(),
            recv_buffers: 512,
            recv_buffer_bytes: 8192,
            link_bytes: 64 * 1024,
            reply_limit: None,
            spin: None,
            gather: Duration::from_micros(50),
            lifo_slot: true,
            seed: None,
            float_lane: true,
            blocking: PoolConfig::default(),
            shutdown_limit: Duration::from_secs(5),
            on_shard_start: None,
            hooks: Hooks::default(),
            watchdog: None,
            on_stall: None,
        }
    }

    /// How many shards: 1 to 1024. Default: one per CPU this process may use.
    ///
    /// More shards than CPUs share them, which is reported on standard error: each waits while another runs.
    pub fn shards(mut self, count: usize) -> Self {
        self.shards = Some(count);
        self
    }

    /// Whether each shard's thread is pinned to one CPU, in the order of the allowed set. Default: yes.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = pin;
        self
    }

    /// What threads are called: this, a dash, and the shard's number. Default: `shard`. The kernel shows 15 bytes.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.thread_name = name.into();
        self
    }

    /// The stack of each shard's thread, 64 KiB to 1 GiB. Default: that of the standard library, 2 MiB unless `RUST_MIN_STACK` says
    /// otherwise.
    ///
    /// Futures live on the heap; what they call, and values on their way into them, are on the stack. A program without
    /// optimisations moves an argument of a quarter of a megabyte often enough to need more.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = Some(bytes);
        self
    }

    /// How the shards do their I/O. Default: io_uring where it works, else epoll.
    ///
    /// [`Runtime::backend`] tells what was chosen, and [`Runtime::backend_reason`] why it was not io_uring.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// How long an answer is waited for where nothing else is said, see [`Due::usual`](crate::mesh::Due::usual). Default:
    /// without limit.
    pub fn reply_limit(mut self, limit: Option<Duration>) -> Self {
        self.reply_limit = limit;
        self
    }

    /// Entries of each ring's submission queue, a power of two from 8 to 4096. Default: 256.
    ///
    /// It bounds what one visit to the kernel submits, not how many operations may be in flight. The completion queue
    /// has eight times as many.
    pub fn ring_entries(mut self, entries: u32) -> Self {
        let entries = entries.clamp(8, 4096).next_power_of_two();
        self.ring = RingConfig {
            sq_entries: entries,
            cq_entries: entries * 8,
            ..self.ring
        };
        self
    }

    /// How many receive buffers each shard has, a power of two from 1 to 32768. Default: 512.
    ///
    /// They are what [`TcpStream::recv`](crate::net::TcpStream::recv) hands out. A connection holds one only while bytes
    /// lie in it; when all are held, receives fall back to buffers from the heap. The memory, this many times
    /// [`recv_buffer_bytes`](Self::recv_buffer_bytes), is reserved when a shard first needs one, and taken from the
    /// system as it is used. 16 bytes of each count against the limit on locked memory.
    pub fn recv_buffers(mut self, count: usize) -> Self {
        self.recv_buffers = count;
        self
    }

    /// Bytes of each receive buffer, from 64 to 1048576. Default: 8192.
    pub fn recv_buffer_bytes(mut self, bytes: usize) -> Self {
        self.recv_buffer_bytes = bytes;
        self
    }

    /// Bytes of the ring of each ordered pair of shards, a power of two from 4096 to 2^30. Default: 65536.
    ///
    /// It is the bound on messages in flight between two shards. A pair that never talks has no ring.
    pub fn link_bytes(mut self, bytes: usize) -> Self {
        self.link_bytes = bytes;
        self
    }

    /// How long a shard with nothing to do watches for news of any kind before it sleeps; zero to sleep at once.
    ///
    /// A wake-up of a sleeping thread costs tens of microseconds on both sides; a spin that catches the news costs
    /// nothing but the CPU it burns. Worth it on CPUs nobody else needs.
    ///
    /// If this is not called a shard watches for messages of its peers only: for up to 50 microseconds, while one that it
    /// talks with is at work. So shards that talk are not woken for each message, and where nobody works nobody watches.
    ///
    /// A shard spins only while its pauses are about as short as the limit, and never where shards share CPUs. One that is
    /// interrupted while it spins leaves the CPU to others for a while.
    pub fn spin(mut self, limit: Duration) -> Self {
        self.spin = Some(limit);
        self
    }

    /// How long a sleeping shard may let completions gather before it wakes up, up to 10 ms. Default: 50 microseconds.
    ///
    /// A sleep and a wake-up cost about as much as a small request, so a server that answers many clients spends less CPU on
    /// each if it wakes up for several. The shard waits for as many completions as came together lately, at most 32, and
    /// this is the most that one of them is delayed. Where they come one by one, as from a client that sends one request at
    /// a time, nothing is delayed; nor is a timer; and a shard that other shards send to while it sleeps does not wait.
    ///
    /// Zero switches it off, for programs that count microseconds. It takes the io_uring backend and Linux 6.12; elsewhere
    /// it has no effect.
    pub fn gather(mut self, window: Duration) -> Self {
        self.gather = window;
        self
    }

    /// Whether a task that is woken by the one that runs goes next, before those that are ready. Default: yes.
    ///
    /// Who waits for an answer gets it sooner on a busy shard. At most three tasks in a row are run that way, with one
    /// budget, so nobody waits for long. Without it all tasks run in the order in which they became ready.
    pub fn lifo_slot(mut self, lifo_slot: bool) -> Self {
        self.lifo_slot = lifo_slot;
        self
    }

    /// The seed of the shards' random generators. Default: taken from the kernel.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How many threads the [blocking pool](crate::blocking) may have, at least 1. Default: 256.
    ///
    /// They wait rather than work, so their number follows what should wait at one time, such as reads of a slow disk, not
    /// the number of CPUs. They are made when needed and end when idle. The default leaves room below the limits that
    /// containers commonly set on threads.
    pub fn blocking_threads(mut self, max: usize) -> Self {
        self.blocking.threads_max = max;
        self
    }

    /// How many jobs may wait for a thread of the blocking pool before [`blocking::try_run`] refuses. Default: 4096.
    ///
    /// Zero means that a job is refused unless a thread is there for it. [`blocking::run`] is not refused: it waits.
    ///
    /// [`blocking::run`]: crate::blocking::run
    /// [`blocking::try_run`]: crate::blocking::try_run
    pub fn blocking_queue(mut self, max: usize) -> Self {
        self.blocking.queue_max = max;
        self
    }

    /// How long a thread of the blocking pool waits for a job before it ends. Default: ten seconds.
    pub fn blocking_keep_alive(mut self, limit: Duration) -> Self {
        self.blocking.keep_alive = limit;
        self
    }

    /// Whether work that is not bound to a shard moves to shards that have time for it. Default: yes.
    ///
    /// Without it, [`spawn_anywhere`](crate::spawn_anywhere) and [`offload`](crate::offload) keep to the shard they are
    /// called on, and from other threads work goes round the shards.
    pub fn float_lane(mut self, enabled: bool) -> Self {
        self.float_lane = enabled;
        self
    }

    /// How long each [phase](crate::shutdown) of a shard's end may take, and the last jobs of the blocking pool.
    /// Default: five seconds.
    ///
    /// A shard or a job that needs longer is given up and reported, and its thread is left behind.
    pub fn shutdown_limit(mut self, limit: Duration) -> Self {
        self.shutdown_limit = limit;
        self
    }

    /// Calls `hook` on the thread of each shard before any shard runs. If it panics on one, none runs.
    pub fn on_shard_start(mut self, hook: impl Fn(ShardId) + Send + Sync + 'static) -> Self {
        self.on_shard_start = Some(Arc::new(hook));
        self
    }

    /// Starts the shards: all of them, or none.
    ///
    /// # Errors
    /// If a value is out of range, a thread cannot be made or pinned, the backend that was asked for does not work here,
    /// or the start hook panicked. The text names the cause and its cure; no thread is left behind.
    pub fn start(self) -> Result<Runtime, StartError> {
        launch::start(&self)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("shards", &self.shards)
            .field("pin", &self.pin)
            .field("thread_name", &self.thread_name)
            .field("stack_bytes", &self.stack_bytes)
            .field("backend", &self.backend)
            .field("ring", &self.ring)
            .field("recv_buffers", &self.recv_buffers)
            .field("recv_buffer_bytes", &self.recv_buffer_bytes)
            .field("link_bytes", &self.link_bytes)
            .field("spin", &self.spin)
            .field("gather", &self.gather)
            .field("lifo_slot", &self.lifo_slot)
            .field("seed", &self.seed)
            .field("float_lane", &self.float_lane)
            .field("watchdog", &self.watchdog)
            .field("blocking", &self.blocking)
            .field("shutdown_limit", &self.shutdown_limit)
            .finish_non_exhaustive()
    }
}
