//! The command line, and the table that is printed.

use std::time::{Duration, Instant};

use greenroom::{Error, System};

use crate::harness::{Benchmark, Size};

/// What was asked for.
#[derive(Debug)]
pub struct Options {
    names: Vec<String>,
    shards: Vec<usize>,
    rounds: usize,
    size: Size,
}

impl Options {
    pub fn parse(
        mut arguments: impl Iterator<Item = String>,
        known: &[&str],
    ) -> Result<Self, String> {
        let mut options = Self {
            names: Vec::new(),
            shards: vec![1, 2],
            rounds: 5,
            size: Size::Suite,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--small" => options.size = Size::Small,
                "--rounds" => options.rounds = number(&value()?)?,
                "--shards" => {
                    options.shards = value()?.split(',').map(number).collect::<Result<_, _>>()?;
                }
                name if known.contains(&name) => options.names.push(argument),
                _ => {
                    let known = known.join(" ");
                    return Err(format!(
                        "there is no {argument}; the benchmarks are: {known}"
                    ));
                }
            }
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .ok_or(format!("{text} is no number from 1"))
}

/// The median round of a benchmark, and how many messages it took.
struct Median {
    elapsed: Duration,
    messages: u64,
}

/// Runs what is wanted and prints a row for each benchmark.
pub fn print(benchmarks: &[Benchmark], options: &Options) -> Result<(), Error> {
    print!("{:<24}", "");
    for shards in &options.shards {
        print!("{:>26}", format!("{shards} shards"));
    }
    println!();
    for benchmark in benchmarks.iter().filter(|one| options.wants(one.name)) {
        print!("{:<24}", benchmark.name);
        for &shards in &options.shards {
            let Median { elapsed, messages } = median(benchmark, shards, options)?;
            let each = elapsed.as_secs_f64() * 1e9 / messages as f64;
            let ms = elapsed.as_secs_f64() * 1e3;
            print!("{ms:>9.1} ms {each:>8.0} ns/msg");
        }
        println!();
    }
    Ok(())
}

fn median(benchmark: &Benchmark, shards: usize, options: &Options) -> Result<Median, Error> {
    let mut rounds = Vec::with_capacity(options.rounds);
    for _ in 0..options.rounds {
        let system = System::start(shards)?;
        let start = Instant::now();
        let messages = (benchmark.run)(&system, options.size)?;
        let elapsed = start.elapsed();
        rounds.push(Median { elapsed, messages });
        drop(system);
    }
    rounds.sort_by_key(|round| round.elapsed);
    Ok(rounds.swap_remove(options.rounds / 2))
}
