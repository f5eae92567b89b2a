//! What a message costs: local and cross-shard tells and asks, spawning, and the heap of an idle actor.
//!
//! `cargo run --release -p greenroom-benches --bin messages [-- NAME..]` prints one row per work: the median of five
//! runs. The work is what users of other frameworks measure: three million `add(1)` with one `get` at the end that
//! checks the sum, the same across shards with one message a turn, 200 000 sequential `get`s, 200 000 actors.

#![expect(clippy::print_stdout, reason = "a benchmark prints its rows")]
#![expect(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use greenroom::prelude::*;

const TELLS: u64 = 3_000_000;
const LONE_TELLS: u64 = 500_000;
const ASKS: u64 = 200_000;
/// Fewer than on one shard: with `SPIN_US=0` each of these waits for two sleeping threads to wake up.
const CROSS_ASKS: u64 = 20_000;
const SPAWNS: u64 = 200_000;
const RUNS: usize = 5;

/// Counts what is allocated, on its way to the system's allocator.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(
            i64::try_from(layout.size()).unwrap_or(i64::MAX),
            Ordering::Relaxed,
        );
        // SAFETY: our caller's contract is the callee's.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(
            i64::try_from(layout.size()).unwrap_or(i64::MAX),
            Ordering::Relaxed,
        );
        // SAFETY: our caller's contract is the callee's.
        unsafe { Heap.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

#[derive(Default)]
struct Counter {
    sum: u64,
}

#[actor(mailbox = 1024)]
impl Counter {
    pub(crate) fn add(&mut self, by: u64) {
        self.sum += by;
    }

    pub(crate) fn get(&self) -> u64 {
        self.sum
    }

    pub(crate) fn reset(&mut self) {
        self.sum = 0;
    }
}

/// One measured row: how long so many operations took, and how many allocations they made.
struct Sample {
    elapsed: Duration,
    allocations: u64,
}

async fn measure<F: AsyncFnOnce()>(work: F) -> Sample {
    let allocations = ALLOCATIONS.load(Ordering::Relaxed);
    let start = Instant::now();
    work().await;
    Sample {
        elapsed: start.elapsed(),
        allocations: ALLOCATIONS.load(Ordering::Relaxed) - allocations,
    }
}

async fn tells(counter: Addr<Counter>) -> Sample {
    counter.reset().await.unwrap();
    measure(async || {
        for _ in 0..TELLS {
            counter.add(1).tell().await.unwrap();
        }
        assert_eq!(counter.get().await.unwrap(), TELLS);
    })
    .await
}

/// Each in a turn of its own, so that it crosses alone.
async fn lone_tells(counter: Addr<Counter>) -> Sample {
    counter.reset().await.unwrap();
    measure(async || {
        for _ in 0..LONE_TELLS {
            counter.add(1).tell().await.unwrap();
            greenroom::runtime::yield_now().await;
        }
        assert_eq!(counter.get().await.unwrap(), LONE_TELLS);
    })
    .await
}

/// One message at a time: each is answered before the next is sent, so nothing is batched.
async fn asks(counter: Addr<Counter>, count: u64) -> Sample {
    measure(async || {
        for _ in 0..count {
            std::hint::black_box(counter.get().await.unwrap());
        }
    })
    .await
}

async fn spawns() -> (Sample, f64) {
    let live = LIVE_BYTES.load(Ordering::Relaxed);
    let mut actors = Vec::with_capacity(usize::try_from(SPAWNS).unwrap());
    let room = LIVE_BYTES.load(Ordering::Relaxed) - live;
    let sample = measure(async || {
        for _ in 0..SPAWNS {
            actors.push(greenroom::spawn(Counter::default()));
        }
        actors[actors.len() - 1].get().await.unwrap();
    })
    .await;
    let bytes = (LIVE_BYTES.load(Ordering::Relaxed) - live - room) as f64 / SPAWNS as f64;
    for actor in &actors {
        Addr::kill(*actor);
    }
    (sample, bytes)
}

fn row(work: &str, count: u64, samples: &mut [Sample]) {
    samples.sort_by_key(|sample| sample.elapsed);
    let median = &samples[samples.len() / 2];
    let ns = median.elapsed.as_nanos() as f64 / count as f64;
    let allocations = median.allocations as f64 / count as f64;
    println!(
        "{work:<22} {ns:>10.1} ns/op {:>10.2} Mop/s {allocations:>8.3} allocations/op",
        1e3 / ns
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted =
        |work: &str| wanted.is_empty() || wanted.iter().any(|name| work.contains(name.as_str()));
    let spin = std::env::var("SPIN_US").ok().and_then(|us| us.parse().ok());
    let mut builder = System::builder().shards(2);
    if let Some(us) = spin {
        builder = builder.spin(Duration::from_micros(us));
    }
    let system = builder.start().unwrap();
    for (place, shard, count) in [("local", 0_u16, ASKS), ("cross", 1, CROSS_ASKS)] {
        let counter = system
            .block_on(system.spawn_on(shard, Counter::default))
            .unwrap();
        let tell = format!("{place} tell");
        if is_wanted(&tell) {
            let mut samples: Vec<_> = (0..RUNS)
                .map(|_| system.run_on(0, move || tells(counter)))
                .collect();
            row(&tell, TELLS, &mut samples);
        }
        let lone = format!("{place} tell, alone");
        if shard != 0 && is_wanted(&lone) {
            let mut samples: Vec<_> = (0..RUNS)
                .map(|_| system.run_on(0, move || lone_tells(counter)))
                .collect();
            row(&lone, LONE_TELLS, &mut samples);
        }
        let ask = format!("{place} ask");
        if is_wanted(&ask) {
            let mut samples: Vec<_> = (0..RUNS)
                .map(|_| system.run_on(0, move || asks(counter, count)))
                .collect();
            row(&ask, count, &mut samples);
        }
    }
    if is_wanted("spawn") {
        let mut bytes = 0.0;
        let mut samples: Vec<_> = (0..RUNS)
            .map(|_| {
                let (sample, per_actor) = system.run_on(0, spawns);
                bytes = per_actor;
                sample
            })
            .collect();
        row("spawn", SPAWNS, &mut samples);
        println!("{:<22} {bytes:>10.1} bytes", "heap per idle actor");
    }
    system.shutdown(Duration::from_secs(1));
}
