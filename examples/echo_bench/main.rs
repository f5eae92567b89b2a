//! How fast the runtime answers requests over TCP, next to other runtimes.
//!
//! ```text
//! cargo run --release --example echo_bench
//! ```
//!
//! `redis-benchmark` sends 50 connections' worth of inline `PING`s, one at a time and 16 at a time, from one CPU to a server
//! on another. The servers are the one in `server.rs`, with and without [`greenroom_runtime::Builder::gather`], and those in `benches/peers`: tokio, monoio, compio, glommio, and
//! one on io_uring itself, which shows what the kernel allows. All run in turn, so that a noisy neighbour hits all of
//! them; the medians of all rounds are printed. Compare numbers of one run only.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that reports on the terminal"
)]

mod measure;
mod server;

use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;

use self::measure::{Bench, Candidate};

/// Compares servers of one request-response protocol on several runtimes.
#[derive(Parser)]
struct Options {
    /// Rounds; the median of each figure is printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Requests of one measurement, for each request that a connection has in flight.
    #[arg(long, default_value_t = 100_000)]
    requests: usize,
    /// The CPU the servers run on.
    #[arg(long, default_value_t = 0)]
    server_cpu: usize,
    /// The CPU the client runs on.
    #[arg(long, default_value_t = 1)]
    client_cpu: usize,
    /// Only the servers whose name has this in it.
    #[arg(long)]
    only: Option<String>,
    /// Runs as a server at this port of the local host, and does nothing else.
    #[arg(long)]
    serve: Option<u16>,
    /// For how many microseconds that server lets completions gather; the runtime's default if it is not said.
    #[arg(long)]
    gather_us: Option<u64>,
}

const PEERS: [&str; 5] = ["raw", "tokio", "monoio", "compio", "glommio"];

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match options.serve {
        Some(port) => server::run(port, options.gather_us.map(Duration::from_micros)),
        None => compare(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo_bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> io::Result<()> {
    for (tool, package) in [
        ("redis-benchmark", "redis-tools"),
        ("taskset", "util-linux"),
    ] {
        if Command::new(tool).arg("--version").output().is_err() {
            return Err(io::Error::other(format!(
                "`{tool}` is not installed (on Debian: apt-get install {package})"
            )));
        }
    }
    let greenroom = |name, arguments| -> io::Result<Candidate> {
        Ok(Candidate {
            name,
            program: std::env::current_exe()?,
            arguments,
        })
    };
    let mut candidates = vec![
        greenroom("greenroom", vec!["--serve"])?,
        greenroom("ungathered", vec!["--gather-us", "0", "--serve"])?,
    ];
    match build_peers() {
        Ok(folder) => candidates.extend(PEERS.map(|name| Candidate {
            name,
            program: folder.join(name),
            arguments: Vec::new(),
        })),
        Err(error) => eprintln!("echo_bench: the peers are left out: {error}"),
    }
    if let Some(part) = &options.only {
        candidates.retain(|candidate| candidate.name.contains(part.as_str()));
    }
    let bench = Bench {
        rounds: options.rounds.max(1),
        requests: options.requests,
        server_cpu: options.server_cpu,
        client_cpu: options.client_cpu,
    };
    bench.run(&candidates)
}

/// Builds the servers on other runtimes. Returns the folder of the programs.
fn build_peers() -> io::Result<PathBuf> {
    let workspace = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let manifest = workspace.join("benches/peers/Cargo.toml");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace.join("target"), PathBuf::from)
        .join("peers");
    eprintln!("echo_bench: building the peers, which takes minutes the first time");
    let built = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--quiet",
            "--locked",
            "--manifest-path",
        ])
        .arg(&manifest)
        .arg("--target-dir")
        .arg(&target)
        .status()?;
    if built.success() {
        Ok(target.join("release"))
    } else {
        Err(io::Error::other("they could not be built"))
    }
}
