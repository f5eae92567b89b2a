//! Threads: spawn, pin, the start gate, and the thread's last words.
//!
//! Every shard is made on its own thread (a ring belongs to the thread that made it), then waits at the gate. The
//! starter hears from each of them, an error and a panic included, and opens the gate for all or for none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use crate::blocking::pool::{Pool, PoolConfig};
use crate::builder::{Builder, StartHook};
use crate::error::{StartError, StartErrorKind};
use crate::float::board::Board;
use crate::mesh::team::Team;
use crate::observe::hooks::ShardMoment;
use crate::ring::{BufferPoolConfig, Effects};
use crate::runtime::Runtime;
use crate::shard::registry::Lease;
use crate::shard::{Inbound, SHARD_NUMBER_COUNT, Shard, ShardConfig, ShardId, context};
use crate::sys;
use crate::task::panic_text;

/// What a shard's thread tells the starter.
type Report = (ShardId, Result<&'static str, StartErrorKind>);

/// All that a shard's thread is given.
struct Order {
    config: ShardConfig,
    lease: Lease,
    cpu: Option<usize>,
    hook: Option<StartHook>,
    report: mpsc::Sender<Report>,
    gate: mpsc::Receiver<()>,
}

pub(crate) fn start(builder: &Builder) -> Result<Runtime, StartError> {
    let cpus = sys::allowed_cpus();
    let count = builder.shards.unwrap_or_else(|| cpus.len().max(1));
    check(builder, count)?;
    if count > cpus.len() && !cpus.is_empty() {
        warn(&format!(
            "greenroom: {count} shards share {} CPUs; a shard waits while another one runs on its CPU",
            cpus.len()
        ));
    }
    let leases = lease(count)?;
    let numbers = leases.iter().map(Lease::number).collect();
    let pool = pool(builder, &cpus);
    let (board, lanes) = Board::new(count, builder.float_lane);
    let team = Arc::new(Team::new(numbers, builder.link_bytes, pool, board));
    let mut ring = builder.ring.clone();
    ring.worker_cpus = cpus.clone();
    ring.pool = recv_buffers(builder)?;
    let seed = builder.seed.unwrap_or_else(sys::random_seed);

    let (report, reports) = mpsc::channel();
    let mut gates = Vec::with_capacity(count);
    let mut threads = Vec::with_capacity(count);
    let mut failure = None;
    for ((index, lease), lane) in (0_u16..).zip(leases).zip(lanes) {
        let (open, gate) = mpsc::channel();
        let cpu = (builder.pin && !cpus.is_empty()).then(|| cpus[usize::from(index) % cpus.len()]);
        let config = ShardConfig {
            id: ShardId::from(index),
            team: team.clone(),
            lane,
            ring: ring.clone(),
            seed,
            spin: builder.spin,
            hooks: builder.hooks.clone().into_option(),
        };
        let order = Order {
            config,
            lease,
            cpu,
            hook: builder.on_shard_start.clone(),
            report: report.clone(),
            gate,
        };
        let name = format!("{}-{index}", builder.thread_name);
        match thread::Builder::new().name(name).spawn(move || run(order)) {
            Ok(thread) => {
                threads.push(thread);
                gates.push(open);
            }
            Err(error) => {
                failure = Some(StartError {
                    shard: Some(ShardId::from(index)),
                    kind: StartErrorKind::Thread(error),
                });
                break;
            }
        }
    }
    drop(report);
    let backend = await_reports(&reports, threads.len(), &mut failure);
    if let Some(failure) = failure {
        // Nobody opens the gate: every thread sees it fall and takes down what it made.
        drop(gates);
        join_quietly(threads);
        return Err(failure);
    }
    for gate in gates {
        gate.send(())
            .expect("a shard that reported waits at the gate");
    }
    Ok(Runtime::new(team, threads, backend))
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

/// Hears from every thread; keeps the first failure. Returns the name of the backend.
fn await_reports(
    reports: &mpsc::Receiver<Report>,
    threads: usize,
    failure: &mut Option<StartError>,
) -> &'static str {
    let mut backend = "";
    for _ in 0..threads {
        match reports.recv() {
            Ok((_, Ok(name))) => backend = name,
            Ok((shard, Err(kind))) => {
                failure.get_or_insert(StartError {
                    shard: Some(shard),
                    kind,
                });
            }
            // Every sender is gone: threads that died have reported, see `run`.
            Err(mpsc::RecvError) => break,
        }
    }
    backend
}

fn join_quietly(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        // A failed start has reported its cause; a panic on the way out adds nothing to it.
        drop(thread.join());
    }
}

/// The life of a shard's thread.
fn run(order: Order) {
    let Order {
        config,
        lease,
        cpu,
        hook,
        report,
        gate,
    } = order;
    let (id, team) = (config.id, config.team.clone());
    let made = catch_unwind(AssertUnwindSafe(|| make(config, lease, cpu, hook)));
    let shard = match made {
        Ok(Ok(shard)) => shard,
        Ok(Err(kind)) => return tell(&report, id, Err(kind)),
        Err(payload) => {
            let text = panic_text(payload.as_ref()).to_owned();
            return tell(&report, id, Err(StartErrorKind::Panicked(text)));
        }
    };
    let entered = context::enter(&shard);
    let mut effects = Effects::default();
    tell(&report, id, Ok(shard.backend_name()));
    drop(report);
    if gate.recv().is_err() {
        shard.abandon(&mut effects);
        return;
    }
    let mut inbound: Inbound = (0..team.len()).map(|_| None).collect();
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| shard.run(&mut inbound, &mut effects))) {
        team.stop(Some(payload));
    }
    let torn_down = catch_unwind(AssertUnwindSafe(|| {
        shard.tear_down(&mut inbound, &mut effects);
    }));
    shard.hook_shard(ShardMoment::Stop);
    drop(entered);
    if let Err(payload) = torn_down {
        team.stop(Some(payload));
        shard.report_quiet();
        // Whatever state it is in, the kernel may still hold parts of it.
        #[expect(
            clippy::mem_forget,
            reason = "memory the kernel may use is leaked, never freed"
        )]
        std::mem::forget(shard);
    }
}

fn tell(report: &mpsc::Sender<Report>, id: ShardId, what: Result<&'static str, StartErrorKind>) {
    report
        .send((id, what))
        .expect("the starter hears every thread out");
}

fn make(
    config: ShardConfig,
    lease: Lease,
    cpu: Option<usize>,
    hook: Option<StartHook>,
) -> Result<Box<Shard>, StartErrorKind> {
    if let Some(cpu) = cpu {
        sys::pin_to(cpu).map_err(|source| StartErrorKind::Pin { cpu, source })?;
    }
    let id = config.id;
    if let Some(hook) = hook {
        hook(id);
    }
    Shard::new(config, lease).map(Box::new)
}

#[expect(
    clippy::print_stderr,
    reason = "there is no logger to ask yet, and a slow server is worse than a line"
)]
fn warn(text: &str) {
    eprintln!("{text}");
}
