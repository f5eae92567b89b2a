//! The same work on other actor systems, side by side.
//!
//! Every peer is a program that runs one benchmark so many times and prints how many seconds each took, one a line. It ends
//! with an error if a result is wrong. They are run one after the other, benchmark by benchmark, so that whatever else the
//! machine does meets all of them alike.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use greenroom::Error;

use crate::harness::Size;
use crate::table::Failure;

/// The benchmarks that the peers have too.
pub const COMMON: [&str; 8] = [
    "counting",
    "ping_pong",
    "thread_ring",
    "fork_join_create",
    "fork_join_throughput",
    "chameneos",
    "big",
    "bank_transaction",
];

/// Another actor system, built and ready.
pub struct Peer {
    pub name: &'static str,
    kind: Kind,
}

enum Kind {
    /// A module of the program of `benches/peers`.
    Rust(PathBuf),
    /// A folder with a compiled module.
    Erlang(PathBuf),
    Caf(PathBuf),
}

impl Peer {
    /// Builds all of them, those whose compiler or library is here, and says which are not.
    pub fn build_all() -> Result<(Vec<Self>, Vec<String>), Error> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let built = built_folder()?;
        let program = build_rust(&folder, &built)?;
        let mut peers: Vec<_> = ["actix", "ractor", "kameo"]
            .map(|name| Self {
                name,
                kind: Kind::Rust(program.clone()),
            })
            .into();
        let mut skipped = Vec::new();
        let mut erlc = Command::new("erlc");
        erlc.arg("-o").arg(&built);
        match try_build(erlc.arg(folder.join("foreign/savina.erl"))) {
            Ok(()) => peers.push(Self {
                name: "erlang",
                kind: Kind::Erlang(built.clone()),
            }),
            Err(why) => skipped.push(format!("erlang: {why} (Debian: erlang-base)")),
        }
        let program = built.join("savina-caf");
        let mut compiler = Command::new("g++");
        compiler.args(["-O3", "-std=c++17", "-o"]).arg(&program);
        compiler.arg(folder.join("foreign/savina.cpp"));
        match try_build(compiler.arg("-lcaf_core")) {
            Ok(()) => peers.push(Self {
                name: "caf",
                kind: Kind::Caf(program),
            }),
            Err(why) => skipped.push(format!("caf: {why} (Debian: g++ and libcaf-dev)")),
        }
        Ok((peers, skipped))
    }

    /// The rounds of a benchmark on the first so many cores.
    pub fn run(
        &self,
        benchmark: &str,
        cores: usize,
        rounds: usize,
        size: Size,
    ) -> Result<Vec<Duration>, Error> {
        let (cores_text, rounds_text) = (cores.to_string(), rounds.to_string());
        // Threads that are not pinned one by one are kept to the same cores.
        let mut command = Command::new("taskset");
        command.arg("-c").arg(format!("0-{}", cores - 1));
        match &self.kind {
            Kind::Rust(program) => {
                command.arg(program);
                command.args([self.name, benchmark, &cores_text, &rounds_text]);
                command.args((size == Size::Small).then_some("--small"));
            }
            Kind::Erlang(folder) => {
                let size = size.pick("suite", "small");
                command.args([
                    "erl",
                    "+S",
                    &format!("{cores}:{cores}"),
                    "+sbt",
                    "db",
                    "-pa",
                ]);
                command
                    .arg(folder)
                    .args(["-noshell", "-s", "savina", "main"]);
                command.args([benchmark, &rounds_text, size]);
            }
            Kind::Caf(program) => {
                let size = size.pick("suite", "small");
                command.arg(program);
                command.args([benchmark, &cores_text, &rounds_text, size]);
            }
        }
        let output = command.output()?;
        let failure = |text: &[u8]| Failure {
            what: format!("{} {benchmark} on {cores} cores", self.name),
            why: String::from_utf8_lossy(text).into_owned(),
        };
        if !output.status.success() {
            return Err(failure(&output.stderr).into());
        }
        let lines = str::from_utf8(&output.stdout)?.lines();
        let seconds = lines
            .map(str::parse::<f64>)
            .collect::<Result<Vec<_>, _>>()?;
        if seconds.len() != rounds {
            return Err(failure(&output.stdout).into());
        }
        Ok(seconds.into_iter().map(Duration::from_secs_f64).collect())
    }
}

/// Where the peers are built: beside what is built of the workspace.
fn built_folder() -> Result<PathBuf, Error> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).unwrap_or(&program);
    let built = target.join("peers");
    std::fs::create_dir_all(&built)?;
    Ok(built)
}

/// Builds the peers in Rust, a package of its own. Returns the program.
fn build_rust(folder: &Path, built: &Path) -> Result<PathBuf, Error> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--quiet", "--bin", "savina"]);
    cargo.arg("--manifest-path").arg(folder.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(built);
    try_build(&mut cargo).map_err(|why| Failure {
        what: "building benches/peers".to_owned(),
        why,
    })?;
    Ok(built.join("release/savina"))
}

fn try_build(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    Err(text.lines().next().unwrap_or("no reason given").to_owned())
}
