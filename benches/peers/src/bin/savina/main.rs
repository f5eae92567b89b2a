//! Eight of the Savina benchmarks on actix, ractor and kameo, to compare with.
//!
//! `savina PEER BENCHMARK CORES ROUNDS [--small]` prints how many seconds each round took, one a line. A wrong result is a
//! panic. Parameters, messages and checks are those of `benches/savina`, which is the program to run: it runs this one.
//!
//! Every peer is used as its own users use it, with its fastest mailbox. On one core it has one thread, on two it has two,
//! each pinned to its core, and a runtime of its own each round.

mod actix;
mod colour;
mod kameo;
mod ractor;
mod tokio_cores;

use std::time::Duration;

/// What is run, and how large.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    benchmark: &'a str,
    cores: usize,
    is_small: bool,
}

impl Work<'_> {
    /// One parameter of a benchmark.
    fn pick<T>(&self, suite: T, small: T) -> T {
        if self.is_small { small } else { suite }
    }
}

/// Random numbers that are the same in every run.
pub struct Random(u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * limit as u128) >> 64) as usize
    }
}

/// The piece of work of the fork-join benchmarks.
pub fn work() -> f64 {
    let sine = std::hint::black_box(37.2_f64).sin();
    sine * sine
}

/// Whether a sum of so many pieces of work is what it should be.
pub fn is_sum(sum: f64, count: u64) -> bool {
    (sum - count as f64 * work()).abs() < 1e-9 * sum
}

/// Keeps the calling thread on a core.
pub fn pin(core: usize) {
    assert!(core_affinity::set_for_current(core_affinity::CoreId {
        id: core
    }));
}

/// Accounts of a transfer: money only goes to accounts of a higher number.
pub fn transfer(random: &mut Random, accounts: usize) -> (usize, usize, i64) {
    let from = random.below(accounts / 10 * 8);
    let to = from + 1 + random.below(accounts - from - 1);
    (from, to, 1 + random.below(1000) as i64)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, benchmark, cores, rounds, rest @ ..] = &arguments[..] else {
        panic!("usage: savina PEER BENCHMARK CORES ROUNDS [--small]");
    };
    let work = Work {
        benchmark,
        cores: cores.parse().expect("a number of cores"),
        is_small: rest.iter().any(|argument| argument == "--small"),
    };
    let run: fn(Work<'_>) -> Duration = match peer.as_str() {
        "actix" => actix::run,
        "ractor" => ractor::run,
        "kameo" => kameo::run,
        _ => panic!("there is no {peer}"),
    };
    for _ in 0..rounds.parse().expect("a number of rounds") {
        println!("{}", run(work).as_secs_f64());
    }
}
