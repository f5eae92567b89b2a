//! Threads: spawn, pin, the start gate, and the thread's last words.
//!
//! Every shard is made on its own thread (a ring belongs to the thread that made it), and a start has two stages. First
//! each thread opens its backend, and the starter decides for all of them: where the choice is open and one ring is
//! refused, all go on with epoll. Then each makes its shard and waits at the gate. The starter hears from each of them,
//! an error and a panic included, and opens the gate for all or for none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use crossbeam_deque::Worker;

use crate::blocking::pool::{Pool, PoolConfig};
use crate::builder::{Builder, GATHER_MAX, STACK_BYTES, StartHook};
use crate::error::{StartError, StartErrorKind};
use crate::float::board::{Board, Work};
use crate::mesh::team::Team;
use crate::observe::hooks::ShardMoment;
use crate::observe::trace;
use crate::observe::watchdog::Watchdog;
use crate::ring::{AnyBackend, Backend, BackendError, BufferPoolConfig, Effects, RingConfig};
use crate::runtime::Runtime;
use crate::shard::registry::Lease;
use crate::shard::spin::Watch;
use crate::shard::{Inbound, SHARD_NUMBER_COUNT, Shard, ShardConfig, ShardId, context};
use crate::shutdown::Phase;
use crate::shutdown::stop::Stop;
use crate::sys;
use crate::task::panic_text;

/// What a shard's thread tells the starter, once for each stage it reaches.
type Report = (ShardId, Result<Stage, StartErrorKind>);

/// How far a thread has come.
enum Stage {
    /// It has the backend it was told to try first.
    Opened,
    /// It was refused a ring, and can go on without.
    Refused(BackendError),
    /// It has a shard on the backend of this name.
    Made(&'static str),
}

/// What the starter tells a thread. If it hangs up instead, the thread ends.
enum Go {
    /// Make the shard on the backend you opened.
    Make,
    /// Make the shard on epoll.
    MakeOnEpoll,
    /// Run the shard.
    Run,
}

/// All that a shard's thread is given.
struct Order {
    config: ShardConfig,
    lease: Lease,
    cpu: Option<usize>,
    backend: Backend,
    hook: Option<StartHook>,
    report: mpsc::Sender<Report>,
    gate: mpsc::Receiver<Go>,
}

/// A shard, and the gate it waits at.
type Made = (Box<Shard>, mpsc::Receiver<Go>);

pub(crate) fn start(builder: &Builder) -> Result<Runtime, StartError> {
    let cpus = sys::allowed_cpus();
    let count = builder.shards.unwrap_or_else(|| cpus.len().max(1));
    check(builder, count)?;
    let backend = builder.backend.or_from_environment();
    let backend =
        backend.map_err(|value| StartError::new(StartErrorKind::BackendVariable { value }))?;
    warn_if_crowded(count, &cpus);
    let leases = lease(count)?;
    let (team, lanes) = team(builder, &leases, &cpus);
    let mut ring = builder.ring.clone();
    ring.worker_cpus.clone_from(&cpus);
    ring.pool = recv_buffers(builder)?;
    let seed = builder.seed.unwrap_or_else(sys::random_seed);

    let mut crew = Crew::new();
    for ((index, lease), lane) in (0_u16..).zip(leases).zip(lanes) {
        let (open, gate) = mpsc::channel();
        let config = ShardConfig {
            id: ShardId::from(index),
            team: team.clone(),
            lane,
            ring: ring.clone(),
            seed,
            // Whoever a spin waits for may need the CPU it spins on.
            watch: if count > cpus.len() {
                Watch::Nothing
            } else {
                builder.spin.map_or(Watch::Peers, Watch::Everything)
            },
            gather: builder.gather,
            reply_limit: builder.reply_limit,
            lifo_slot: builder.lifo_slot,
            hooks: builder.hooks.clone().into_option(),
        };
        let order = Order {
            config,
            lease,
            cpu: (builder.pin && !cpus.is_empty()).then(|| cpus[usize::from(index) % cpus.len()]),
            backend,
            hook: builder.on_shard_start.clone(),
            report: crew.report.clone(),
            gate,
        };
        let name = format!("{}-{index}", builder.thread_name);
        if let Err(error) = crew.hire(name, builder.stack_bytes, order, open) {
            crew.dismiss();
            return Err(error);
        }
    }
    crew.start(&team, || watchdog(builder, &team))
}

/// The threads of a runtime that is being started.
struct Crew {
    report: mpsc::Sender<Report>,
    reports: mpsc::Receiver<Report>,
    threads: Vec<thread::JoinHandle<()>>,
    gates: Vec<mpsc::Sender<Go>>,
}

/// What the threads had to say at one stage, if none of them failed.
#[derive(Default)]
struct Heard {
    refused: Option<BackendError>,
    backend: &'static str,
}

impl Crew {
    fn new() -> Crew {
        let (report, reports) = mpsc::channel();
        Crew {
            report,
            reports,
            threads: Vec::new(),
            gates: Vec::new(),
        }
    }

    fn hire(
        &mut self,
        name: String,
        stack_bytes: Option<usize>,
        order: Order,
        gate: mpsc::Sender<Go>,
    ) -> Result<(), StartError> {
        let id = order.config.id;
        let mut thread = thread::Builder::new().name(name);
        if let Some(bytes) = stack_bytes {
            thread = thread.stack_size(bytes);
        }
        let spawned = thread.spawn(move || run(order));
        self.threads.push(spawned.map_err(|error| StartError {
            shard: Some(id),
            kind: StartErrorKind::Thread(error),
        })?);
        self.gates.push(gate);
        Ok(())
    }

    /// Leads all threads through the stages, or none.
    ///
    /// `watch` starts the watchdog, when the shards are about to run.
    fn start(
        self,
        team: &Arc<Team>,
        watch: impl FnOnce() -> Result<Option<Watchdog>, StartError>,
    ) -> Result<Runtime, StartError> {
        let refused = match self.hear() {
            Ok(heard) => heard.refused,
            Err(failure) => {
                self.dismiss();
                return Err(failure);
            }
        };
        self.tell_all(|| match refused {
            None => Go::Make,
            Some(_) => Go::MakeOnEpoll,
        });
        let made = self.hear().and_then(|heard| Ok((heard.backend, watch()?)));
        let (backend, watchdog) = match made {
            Ok(made) => made,
            Err(failure) => {
                self.dismiss();
                return Err(failure);
            }
        };
        trace::backend_chosen(backend, self.threads.len(), refused.as_ref());
        self.tell_all(|| Go::Run);
        let (team, threads) = (team.clone(), self.threads);
        Ok(Runtime::new(team, threads, watchdog, backend, refused))
    }

    /// Hears from every thread; the first failure counts.
    fn hear(&self) -> Result<Heard, StartError> {
        let mut heard = Heard::default();
        let mut failure = None;
        for _ in 0..self.threads.len() {
            let (shard, reached) = self
                .reports
                .recv()
                .expect("a sender is kept in the same value");
            match reached {
                Ok(Stage::Opened) => {}
                Ok(Stage::Made(name)) => heard.backend = name,
                Ok(Stage::Refused(error)) => {
                    heard.refused.get_or_insert(error);
                }
                Err(kind) => {
                    failure.get_or_insert(StartError {
                        shard: Some(shard),
                        kind,
                    });
                }
            }
        }
        failure.map_or(Ok(heard), Err)
    }

    fn tell_all(&self, go: impl Fn() -> Go) {
        for gate in &self.gates {
            gate.send(go())
                .expect("a thread that reported waits at the gate");
        }
    }

    /// Nobody opens the gate: every thread sees it fall and takes down what it made.
    fn dismiss(self) {
        drop(self.gates);
        for thread in self.threads {
            // A failed start has reported its cause; a panic on the way out adds nothing to it.
            drop(thread.join());
        }
    }
}

/// What the shards have in common, and the lane of each.
fn team(builder: &Builder, leases: &[Lease], cpus: &[usize]) -> (Arc<Team>, Vec<Worker<Work>>) {
    let numbers = leases.iter().map(Lease::number).collect();
    let (board, lanes) = Board::new(leases.len(), builder.float_lane);
    let pulses = match builder.watchdog {
        Some(_) => leases.iter().map(|_| Arc::default()).collect(),
        None => Box::default(),
    };
    let pool = pool(builder, cpus);
    let shards = (0..leases.len()).map(ShardId::at);
    let stop = Stop::new(shards, builder.shutdown_limit);
    let team = Team::new(numbers, builder.link_bytes, pool, board, pulses, stop);
    (Arc::new(team), lanes)
}

/// Starts the watchdog if one was asked for.
fn watchdog(builder: &Builder, team: &Arc<Team>) -> Result<Option<Watchdog>, StartError> {
    let Some(limit) = builder.watchdog else {
        return Ok(None);
    };
    let name = format!("{}-watchdog", builder.thread_name);
    match Watchdog::start(team.clone(), name, limit, builder.on_stall.clone()) {
        Ok(watchdog) => Ok(Some(watchdog)),
        Err(error) => Err(StartError::new(StartErrorKind::Watchdog(error))),
    }
}

fn warn_if_crowded(count: usize, cpus: &[usize]) {
    if count > cpus.len() && !cpus.is_empty() {
        warn(&format!(
            "greenroom: {count} shards share {} CPUs; a shard waits while another one runs on its CPU",
            cpus.len()
        ));
    }
}

/// The blocking pool: no thread yet, and later ones that shed the pin of the shard that starts them.
fn pool(builder: &Builder, cpus: &[usize]) -> Pool {
    Pool::new(PoolConfig {
        thread_name: builder.thread_name.clone(),
        cpus: cpus.to_vec(),
        ..builder.blocking.clone()
    })
}

/// Takes a number for each shard.
fn lease(count: usize) -> Result<Vec<Lease>, StartError> {
    let leases: Option<Vec<Lease>> = (0..count).map(|_| Lease::take()).collect();
    leases.ok_or_else(|| StartError::new(StartErrorKind::TooManyShards { asked: count }))
}

fn check(builder: &Builder, count: usize) -> Result<(), StartError> {
    if count == 0 {
        return Err(StartError::new(StartErrorKind::NoShards));
    }
    if count > usize::from(SHARD_NUMBER_COUNT) {
        return Err(StartError::new(StartErrorKind::TooManyShards {
            asked: count,
        }));
    }
    let bytes = builder.link_bytes;
    if !(4096..=1 << 30).contains(&bytes) || !bytes.is_power_of_two() {
        return Err(StartError::new(StartErrorKind::LinkBytes { asked: bytes }));
    }
    if builder.thread_name.contains('\0') {
        let asked = builder.thread_name.clone();
        return Err(StartError::new(StartErrorKind::ThreadName { asked }));
    }
    if let Some(asked) = builder.stack_bytes
        && !STACK_BYTES.contains(&asked)
    {
        return Err(StartError::new(StartErrorKind::StackBytes { asked }));
    }
    if builder.gather > GATHER_MAX {
        let asked = builder.gather;
        return Err(StartError::new(StartErrorKind::Gather { asked }));
    }
    if builder.blocking.threads_max == 0 {
        return Err(StartError::new(StartErrorKind::NoBlockingThreads));
    }
    Ok(())
}

fn recv_buffers(builder: &Builder) -> Result<BufferPoolConfig, StartError> {
    let (count, bytes) = (builder.recv_buffers, builder.recv_buffer_bytes);
    BufferPoolConfig::new(count, bytes)
        .ok_or_else(|| StartError::new(StartErrorKind::RecvBuffers { count, bytes }))
}

/// The life of a shard's thread.
fn run(order: Order) {
    let (id, team) = (order.config.id, order.config.team.clone());
    let report = order.report.clone();
    // Dropped last: what is said then is that nothing of the shard is left.
    let _closed = Closed {
        team: team.clone(),
        id,
    };
    let made = catch_unwind(AssertUnwindSafe(|| make(order)));
    let (shard, gate) = match made {
        Ok(Ok(Some(made))) => made,
        Ok(Ok(None)) => return,
        Ok(Err(kind)) => return tell(&report, id, Err(kind)),
        Err(payload) => {
            let text = panic_text(payload.as_ref()).to_owned();
            return tell(&report, id, Err(StartErrorKind::Panicked(text)));
        }
    };
    let entered = context::enter(&shard);
    let mut effects = Effects::default();
    tell(&report, id, Ok(Stage::Made(shard.backend_name())));
    drop(report);
    let Ok(Go::Run) = gate.recv() else {
        shard.abandon(&mut effects);
        return;
    };
    let mut inbound: Inbound = (0..team.len()).map(|_| None).collect();
    trace::shard_started(id);
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| shard.run(&mut inbound, &mut effects))) {
        team.cancel(Some(payload));
    }
    let torn_down = catch_unwind(AssertUnwindSafe(|| {
        shard.tear_down(&mut inbound, &mut effects);
    }));
    shard.hook_shard(ShardMoment::Stop);
    trace::shard_stopped(id);
    drop(entered);
    if let Err(payload) = torn_down {
        team.cancel(Some(payload));
        // Its peers must not wait for it.
        team.enter(id, Phase::Waiting);
        // Whatever state it is in, the kernel may still hold parts of it.
        #[expect(
            clippy::mem_forget,
            reason = "memory the kernel may use is leaked, never freed"
        )]
        std::mem::forget(shard);
    }
}

/// Tells that a shard's thread has ended.
struct Closed {
    team: Arc<Team>,
    id: ShardId,
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.team.enter(self.id, Phase::Closed);
    }
}

fn tell(report: &mpsc::Sender<Report>, id: ShardId, what: Result<Stage, StartErrorKind>) {
    report
        .send((id, what))
        .expect("the starter hears every thread out");
}

/// Opens the backend, and makes the shard once the starter knows which backend it is to be. `None` if it hangs up.
fn make(order: Order) -> Result<Option<Made>, StartErrorKind> {
    let Order {
        config,
        lease,
        cpu,
        backend,
        hook,
        report,
        gate,
    } = order;
    if let Some(cpu) = cpu {
        sys::pin_to(cpu).map_err(|source| StartErrorKind::Pin { cpu, source })?;
    }
    let id = config.id;
    let pool = config.team.blocking().clone();
    let (opened, stage) = open(backend, &config.ring, &pool).map_err(StartErrorKind::Backend)?;
    tell(&report, id, Ok(stage));
    let backend = match (gate.recv(), opened) {
        (Err(mpsc::RecvError), _) => return Ok(None),
        (Ok(Go::Make), Some(opened)) => opened,
        (Ok(_), opened) => {
            drop(opened);
            AnyBackend::epoll(&config.ring, &pool).map_err(StartErrorKind::Backend)?
        }
    };
    if let Some(hook) = hook {
        hook(id);
    }
    let shard = Shard::new(config, backend, lease)?;
    Ok(Some((Box::new(shard), gate)))
}

/// Opens the backend that was chosen, or the better one if none was.
fn open(
    backend: Backend,
    ring: &RingConfig,
    pool: &Arc<Pool>,
) -> Result<(Option<AnyBackend>, Stage), BackendError> {
    let opened = match backend {
        Backend::Epoll => AnyBackend::epoll(ring, pool)?,
        Backend::IoUring => AnyBackend::uring(ring)?,
        Backend::Auto => match AnyBackend::uring(ring) {
            Ok(opened) => opened,
            Err(error) => return Ok((None, Stage::Refused(error))),
        },
    };
    Ok((Some(opened), Stage::Opened))
}

#[expect(
    clippy::print_stderr,
    reason = "there is no logger to ask yet, and a slow server is worse than a line"
)]
pub(crate) fn warn(text: &str) {
    eprintln!("{text}");
}
