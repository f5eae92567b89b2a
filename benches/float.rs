//! What work that may move is worth: skewed and balanced loads, with the float lane on and off.
//!
//! `cargo run --release -p greenroom-benches --bin float` prints a row for each load: the medians of seven runs with the
//! lane on and off, taken in turns, and their ratio. A load is 20 000 pieces of work of about 10 µs (closures, or tasks
//! that compute once), submitted to one shard (*skewed*) or in equal parts by every shard (*balanced*); or 400 bursts of
//! 8 pieces of 100 µs, one after the other. Below one, the lane was faster.

#![expect(clippy::print_stdout, reason = "a benchmark prints its rows")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use greenroom_runtime::{Builder, Runtime, offload, spawn_anywhere};

const PIECES: usize = 20_000;
const BURSTS: usize = 400;
const BURST: usize = 8;
const RUNS: usize = 7;

/// Computes for about so many microseconds: a chain of multiplications, which no clock and no cache disturbs.
fn compute(micros: u64) -> u64 {
    const STEPS_PER_MICRO: u64 = 700;
    let mut value = 1_u64;
    for step in 0..micros * STEPS_PER_MICRO {
        value = black_box(value)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(step);
    }
    value
}

async fn closures(count: usize) {
    let handles: Vec<_> = (0..count).map(|_| offload(|| compute(10))).collect();
    for handle in handles {
        black_box(handle.await.unwrap());
    }
}

async fn tasks(count: usize) {
    let handles: Vec<_> = (0..count)
        .map(|_| spawn_anywhere(|| async { compute(10) }))
        .collect();
    for handle in handles {
        black_box(handle.await.unwrap());
    }
}

async fn bursts() {
    for _ in 0..BURSTS {
        for result in join_all((0..BURST).map(|_| offload(|| compute(100)))).await {
            black_box(result.unwrap());
        }
    }
}

#[derive(Clone, Copy)]
enum Load {
    SkewedClosures,
    SkewedTasks,
    SkewedBursts,
    BalancedClosures,
    BalancedTasks,
}

impl Load {
    const ALL: [(Self, &'static str); 5] = [
        (Self::SkewedClosures, "skewed closures"),
        (Self::SkewedTasks, "skewed tasks"),
        (Self::SkewedBursts, "skewed bursts"),
        (Self::BalancedClosures, "balanced closures"),
        (Self::BalancedTasks, "balanced tasks"),
    ];

    fn run(self, runtime: &Runtime) -> Duration {
        let start = Instant::now();
        match self {
            Self::SkewedClosures => runtime.run_on(0, || closures(PIECES)),
            Self::SkewedTasks => runtime.run_on(0, || tasks(PIECES)),
            Self::SkewedBursts => runtime.run_on(0, bursts),
            Self::BalancedClosures => on_all(runtime, |share| Box::pin(closures(share))),
            Self::BalancedTasks => on_all(runtime, |share| Box::pin(tasks(share))),
        }
        start.elapsed()
    }
}

/// Runs an equal share of the work on every shard.
fn on_all(runtime: &Runtime, work: fn(usize) -> std::pin::Pin<Box<dyn Future<Output = ()>>>) {
    let share = PIECES / runtime.shard_count();
    let handle = runtime.handle();
    let all = handle
        .shards()
        .map(|shard| handle.spawn_on(shard, move || work(share)));
    for result in runtime.block_on(join_all(all)) {
        result.unwrap();
    }
}

fn median(mut samples: Vec<Duration>) -> f64 {
    samples.sort();
    samples[samples.len() / 2].as_secs_f64() * 1e3
}

fn main() {
    let start = |enabled| Builder::new().float_lane(enabled).start().unwrap();
    let (on, off) = (start(true), start(false));
    println!("{} shards", on.shard_count());
    for (load, name) in Load::ALL {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            without.push(load.run(&off));
            with.push(load.run(&on));
        }
        let (with, without) = (median(with), median(without));
        println!(
            "{name:<18} on {with:>8.1} ms  off {without:>8.1} ms  on/off {:>5.2}",
            with / without
        );
    }
}
