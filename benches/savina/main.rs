//! The Savina actor benchmarks (Imam and Sarkar, AGERE 2014), as a user of greenroom would write them.
//!
//! `cargo run --release -p greenroom-benches --bin savina [-- NAME..] [--shards 1,2] [--spin MICROSECONDS] [--rounds 3]
//! [--small] [--peers]`
//!
//! One file for each benchmark, with the suite's usual parameters. Every run checks its result, and a wrong one ends the
//! program with an error. Each round has a system of its own; what is timed is the work, from the first actor to the
//! checked result.
//!
//! To read them: [`counting`] and [`ping_pong`] tell and ask; [`chameneos`] and [`bounded_buffer`] answer later;
//! [`quicksort`] starts actors from actors; [`radix_sort`] is a line of actors that wait for room; [`n_queens`] deals work
//! to whoever asks for more, by the actor in [`farm`].

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]
#![expect(clippy::print_stderr, reason = "a program that says what is wrong")]
#![expect(
    unreachable_pub,
    reason = "the messages of an actor are public, in a program as in a library"
)]

mod a_star;
mod bank_transaction;
mod big;
mod bounded_buffer;
mod chameneos;
mod cigarette_smokers;
mod concurrent_dictionary;
mod concurrent_sorted_list;
mod counting;
mod dining_philosophers;
mod farm;
mod filter_bank;
mod fork_join_create;
mod fork_join_throughput;
mod harness;
mod logistic_map;
mod matrix_multiply;
mod n_queens;
mod options;
mod peers;
mod pi_precision;
mod ping_pong;
mod quicksort;
mod radix_sort;
mod random;
mod sieve;
mod sleeping_barber;
mod table;
mod thread_ring;
mod trapezoid;

use std::process::ExitCode;

use crate::harness::Benchmark;
use crate::options::{Options, USAGE};

/// A row for each benchmark: its name, and the function of that name's module that runs it on shard 0.
macro_rules! benchmarks {
    ($($name:ident)*) => {
        [$(Benchmark {
            name: stringify!($name),
            run: |system, size| system.run_on(0, move || $name::run(size)),
        }),*]
    };
}

const BENCHMARKS: &[Benchmark] = &benchmarks! {
    ping_pong counting fork_join_throughput fork_join_create thread_ring chameneos big concurrent_dictionary
    concurrent_sorted_list bounded_buffer dining_philosophers sleeping_barber cigarette_smokers logistic_map
    bank_transaction radix_sort filter_bank sieve n_queens matrix_multiply quicksort trapezoid pi_precision a_star
};

fn main() -> ExitCode {
    let names: Vec<_> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
    let options = match Options::parse(std::env::args().skip(1), &names) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("{text}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let printed = if options.with_peers {
        table::print_with_peers(BENCHMARKS, &options)
    } else {
        table::print(BENCHMARKS, &options)
    };
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}
