//! Random work for as long as wanted, and then a look at what it left behind: nothing.
//!
//! `cargo run --release -p greenroom-benches --bin soak -- --seconds 60 --seed 7`
//!
//! A round starts a runtime of one to four shards and lets tasks on all of them do random [`work`]: connections, files,
//! timers, tasks, channels, spawns on other shards, jobs of the pools; much of it is dropped at a random moment. It ends
//! with a [`check`] of what is still there. The exit code is 1, with details, if anything is, or if any work had a result
//! it must not have. The seed decides what is tried; threads and kernel decide how it interleaves.

#![expect(clippy::print_stdout, reason = "a program that reports")]
#![expect(clippy::print_stderr, reason = "a program that reports")]

mod check;
mod work;

use std::mem::ManuallyDrop;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use greenroom_runtime::{Backend, Builder, Handle, RemoteJoinHandle, ShardId};

use check::{Baseline, ProcessCounts};
use work::{Place, Totals};

/// How long one runtime lives. A long soak is many of them, so that starts and ends are soaked too.
const ROUND: Duration = Duration::from_secs(5);
/// How long the work of a round may go on after its time before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(30);
const WORKERS_PER_SHARD: usize = 6;

/// What was asked for on the command line.
struct Options {
    time: Duration,
    seed: u64,
    shards: Option<usize>,
    backend: Backend,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(text) => {
            eprintln!(
                "{text}\nusage: soak [--seconds N] [--seed N] [--shards N] [--backend io_uring|epoll]"
            );
            return ExitCode::from(2);
        }
    };
    silence_wanted_panics();
    let start = Instant::now();
    let mut seed = options.seed;
    while start.elapsed() < options.time {
        let time = ROUND.min(options.time.saturating_sub(start.elapsed()));
        let shards = options
            .shards
            .unwrap_or(1 + usize::from(seed.to_le_bytes()[0] % 4));
        match round(&options, seed, shards, time) {
            Ok(totals) => println!("seed {seed}, {shards} shards: {totals}"),
            Err(failures) => {
                println!("seed {seed}, {shards} shards: failed");
                for failure in failures {
                    println!("  {failure}");
                }
                return ExitCode::FAILURE;
            }
        }
        seed = seed.wrapping_add(1);
    }
    ExitCode::SUCCESS
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        time: Duration::from_secs(10),
        seed: 0,
        shards: None,
        backend: Backend::Auto,
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        if name == "--backend" {
            options.backend = match value.as_str() {
                "io_uring" => Backend::IoUring,
                "epoll" => Backend::Epoll,
                _ => return Err(format!("there is no backend {value}")),
            };
            continue;
        }
        let number: u64 = value
            .parse()
            .map_err(|_| format!("{name} needs a number, not {value}"))?;
        match name.as_str() {
            "--seconds" => options.time = Duration::from_secs(number),
            "--seed" => options.seed = number,
            "--shards" => options.shards = usize::try_from(number).ok(),
            _ => return Err(format!("{name} is not known")),
        }
    }
    Ok(options)
}

/// Panics are part of the work; theirs are not worth a line each.
fn silence_wanted_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(work::WANTED_PANIC) {
            usual(info);
        }
    }));
}

/// One runtime from start to end. What is wrong at its end is returned.
fn round(
    options: &Options,
    seed: u64,
    shards: usize,
    time: Duration,
) -> Result<Arc<Totals>, Vec<String>> {
    let dir = std::env::temp_dir().join(format!("greenroom-soak-{}-{seed}", std::process::id()));
    std::fs::create_dir_all(&dir).map_err(|error| vec![error.to_string()])?;
    let before = ProcessCounts::now();
    let runtime = Builder::new().shards(shards).seed(seed).pin(false);
    let runtime = runtime.backend(options.backend).start();
    let runtime = runtime.map_err(|error| vec![error.to_string()])?;
    let baseline = Baseline::of(&runtime);

    let handle = runtime.handle();
    let (servers, addresses) = start_servers(handle);
    let place = Place::new(addresses, dir.clone(), time);
    let mut failures = run_workers(handle, &place);
    for server in servers {
        server.abort();
    }
    if failures.is_empty() {
        failures.extend(place.failures());
        failures.extend(baseline.check(&runtime));
        failures.extend(place.check());
        let report = runtime.shutdown();
        if report.leaked_operations() + report.dropped_jobs() + report.stuck_jobs() > 0 {
            failures.push(format!("the end of the runtime left something: {report:?}"));
        }
        failures.extend(before.check("the end of the runtime"));
    } else {
        // Some work is stuck: an orderly end would be too.
        let _left_running = ManuallyDrop::new(runtime);
    }
    std::fs::remove_dir_all(&dir).ok();
    if failures.is_empty() {
        Ok(place.totals())
    } else {
        Err(failures)
    }
}

/// Starts an echo server on each shard. Returns what ends them and where they are.
fn start_servers(handle: &Handle) -> (Vec<RemoteJoinHandle<()>>, Vec<std::net::SocketAddr>) {
    let (tell, told) = mpsc::channel();
    let servers = handle.shards().map(|shard| {
        let tell = tell.clone();
        handle.spawn_on(shard, move || work::serve(tell))
    });
    let servers: Vec<_> = servers.collect();
    drop(tell);
    (servers, told.iter().take(handle.shard_count()).collect())
}

/// Lets the workers of all shards work until the time is over. Returns who did not end.
fn run_workers(handle: &Handle, place: &Arc<Place>) -> Vec<String> {
    let (tell, ended) = mpsc::channel();
    let mut open: Vec<(ShardId, usize)> = Vec::new();
    for shard in handle.shards() {
        for number in 0..WORKERS_PER_SHARD {
            let (place, tell) = (Arc::clone(place), tell.clone());
            open.push((shard, number));
            handle
                .spawn_on(shard, move || async move {
                    work::until_the_end(&place).await;
                    tell.send((shard, number)).ok();
                })
                .detach();
        }
    }
    let deadline = Instant::now() + place.time() + PATIENCE;
    while !open.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        match ended.recv_timeout(left) {
            Ok(worker) => open.retain(|other| *other != worker),
            Err(_) => break,
        }
    }
    let stuck = open.iter();
    stuck
        .map(|(shard, number)| format!("worker {number} of {shard} is stuck: {}", place.doing()))
        .collect()
}
