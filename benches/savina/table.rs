//! The tables that are printed.

use std::fmt;
use std::time::{Duration, Instant};

use greenroom::{Error, System};

use crate::harness::Benchmark;
use crate::options::Options;
use crate::peers::{COMMON, Peer};

/// The shards of the column `sleeping` do not watch for news before they sleep.
const SLEEPING: Option<Duration> = Some(Duration::ZERO);

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
            let mut rounds = rounds(benchmark, shards, options.spin, options)?;
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
    print!("{:>18}", "sleeping");
    for peer in &peers {
        print!("{:>18}", peer.name);
    }
    println!();
    let wanted = |one: &&Benchmark| COMMON.contains(&one.name) && options.wants(one.name);
    for benchmark in benchmarks.iter().filter(wanted) {
        for &cores in &options.shards {
            let ours = median(times(benchmark, cores, options.spin, options)?);
            print!("{:<22}{cores:>5}{:>13.1}", benchmark.name, ms(ours));
            let compare = |times| {
                let theirs = median(times);
                let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
                print!("{:>10.1} {:>7}", ms(theirs), format!("x{ratio:.2}"));
            };
            compare(times(benchmark, cores, SLEEPING, options)?);
            for peer in &peers {
                compare(peer.run(benchmark.name, cores, options.rounds, options.size)?);
            }
            println!();
        }
    }
    Ok(())
}

fn rounds(
    benchmark: &Benchmark,
    shards: usize,
    spin: Option<Duration>,
    options: &Options,
) -> Result<Vec<Round>, Error> {
    (0..options.rounds)
        .map(|_| {
            let mut builder = System::builder().shards(shards);
            if let Some(spin) = spin {
                builder = builder.spin(spin);
            }
            let system = builder.start()?;
            let start = Instant::now();
            let messages = (benchmark.run)(&system, options.size)?;
            let elapsed = start.elapsed();
            Ok(Round { elapsed, messages })
        })
        .collect()
}

fn times(
    benchmark: &Benchmark,
    shards: usize,
    spin: Option<Duration>,
    options: &Options,
) -> Result<Vec<Duration>, Error> {
    let rounds = rounds(benchmark, shards, spin, options)?;
    Ok(rounds.into_iter().map(|round| round.elapsed).collect())
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
