//! The tables that are printed.

use std::fmt;
use std::time::{Duration, Instant};

use greenroom::{Error, System};

use crate::harness::Benchmark;
use crate::options::Options;
use crate::peers::{COMMON, Peer};

/// A round of a benchmark, and how many messages it took.
struct Round {
    elapsed: Duration,
    messages: u64,
}

/// Runs what is wanted and prints a row for each benchmark.
pub fn print(benchmarks: &[Benchmark], options: &Options) -> Result<(), Error> {
    print!("{:<24}", "");
    for &shards in &options.shards {
        print!("{:>26}", count(shards, "shard"));
    }
    println!();
    for benchmark in benchmarks.iter().filter(|one| options.wants(one.name)) {
        print!("{:<24}", benchmark.name);
        for &shards in &options.shards {
            let mut rounds = rounds(benchmark, shards, options)?;
            rounds.sort_by_key(|round| round.elapsed);
            let Round { elapsed, messages } = rounds[rounds.len() / 2];
            let each = elapsed.as_secs_f64() * 1e9 / messages as f64;
            print!("{:>9.1} ms {each:>8.0} ns/msg", ms(elapsed));
        }
        println!();
    }
    Ok(())
}

/// Runs what is wanted of what the peers can do too, and prints a row for each benchmark and number of cores.
pub fn print_with_peers(benchmarks: &[Benchmark], options: &Options) -> Result<(), Error> {
    let (peers, skipped) = Peer::build_all()?;
    for skipped in skipped {
        println!("left out: {skipped}");
    }
    print!("{:<22}{:>5}{:>13}", "milliseconds", "cores", "greenroom");
    for peer in &peers {
        print!("{:>18}", peer.name);
    }
    println!();
    let wanted = |one: &&Benchmark| COMMON.contains(&one.name) && options.wants(one.name);
    for benchmark in benchmarks.iter().filter(wanted) {
        for &cores in &options.shards {
            let rounds = rounds(benchmark, cores, options)?;
            let ours = median(rounds.iter().map(|round| round.elapsed).collect());
            print!("{:<22}{cores:>5}{:>13.1}", benchmark.name, ms(ours));
            for peer in &peers {
                let theirs = peer.run(benchmark.name, cores, options.rounds, options.size)?;
                let theirs = median(theirs);
                let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
                print!("{:>10.1} {:>7}", ms(theirs), format!("x{ratio:.2}"));
            }
            println!();
        }
    }
    Ok(())
}

fn rounds(benchmark: &Benchmark, shards: usize, options: &Options) -> Result<Vec<Round>, Error> {
    (0..options.rounds)
        .map(|_| {
            let system = System::start(shards)?;
            let start = Instant::now();
            let messages = (benchmark.run)(&system, options.size)?;
            let elapsed = start.elapsed();
            Ok(Round { elapsed, messages })
        })
        .collect()
}

fn median(mut rounds: Vec<Duration>) -> Duration {
    rounds.sort();
    rounds[rounds.len() / 2]
}

fn ms(elapsed: Duration) -> f64 {
    elapsed.as_secs_f64() * 1e3
}

fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Something besides a wrong result that ends the program.
#[derive(Debug)]
pub struct Failure {
    pub what: String,
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.what, self.why)
    }
}

impl std::error::Error for Failure {}
