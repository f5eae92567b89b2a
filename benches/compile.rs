//! What `#[actor]` costs the compiler, and how much code it makes.
//!
//! `cargo run -p greenroom-benches --bin compile [-- ACTORS MESSAGES]` writes a crate of so many actors with so many
//! messages each (200 and 10 if nothing is said), the same crate without the attribute, and the two again with code that awaits
//! every message twice: of an actor it is asked and told, without the attribute it is an asynchronous method. It checks each of them three times and prints the shortest time of the compiler. Dependencies are
//! built before and not counted. Last comes the size of the expansion, without the blocks that it repeats.
//!
//! Ratios can be compared between machines, times cannot.

#![expect(clippy::print_stdout, reason = "a benchmark prints its rows")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use std::{env, fs, io};

const RUNS: usize = 3;

/// The limits of the project: as multiples of the crate without the attribute, and in bytes for each message.
const CHECK_AT_MOST: f64 = 8.0;
const BYTES_AT_MOST: usize = 900;

#[derive(Clone, Copy)]
struct Shape {
    actors: usize,
    messages: usize,
}

/// What is written for each actor.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    /// The block without the attribute.
    Plain,
    /// The block with it.
    Actors,
    /// Without the attribute, every method asynchronous, and awaited twice: what calls are compared with.
    Awaited,
    /// With the attribute, and every message asked and told once.
    Called,
}

impl Variant {
    const ALL: [Self; 4] = [Self::Plain, Self::Actors, Self::Awaited, Self::Called];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Actors => "actors",
            Self::Awaited => "awaited",
            Self::Called => "called",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Plain => "plain `impl` blocks",
            Self::Actors => "`#[actor]` blocks",
            Self::Awaited => "plain `async fn`s, each awaited twice",
            Self::Called => "actors, each message asked and told",
        }
    }
}

fn main() -> io::Result<()> {
    let mut numbers = env::args().skip(1).map(|text| text.parse().ok());
    let shape = Shape {
        actors: numbers.next().flatten().unwrap_or(200),
        messages: numbers.next().flatten().unwrap_or(10),
    };
    let bench = Bench::new(shape)?;
    println!(
        "{} actors with {} messages each",
        shape.actors, shape.messages
    );
    println!("{:40} {:>9} {:>7}", "`cargo check` of", "seconds", "ratio");
    let mut plain = None;
    for variant in Variant::ALL {
        let took = bench.check(variant)?;
        let plain = *plain.get_or_insert(took);
        let ratio = took.as_secs_f64() / plain.as_secs_f64();
        println!(
            "{:40} {:>9.2} {:>6.1}x",
            variant.what(),
            took.as_secs_f64(),
            ratio
        );
        if variant == Variant::Actors && ratio > CHECK_AT_MOST {
            println!("    more than the limit of {CHECK_AT_MOST} times");
        }
    }
    let bytes = bench.bytes_per_message()?;
    println!("{:40} {bytes:>9} bytes", "expansion of one message");
    if bytes > BYTES_AT_MOST {
        println!("    more than the limit of {BYTES_AT_MOST}");
    }
    Ok(())
}

/// The generated crates, in one workspace.
struct Bench {
    folder: PathBuf,
    shape: Shape,
}

impl Bench {
    fn new(shape: Shape) -> io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        let bench = Self {
            folder: target.join("compile-bench"),
            shape,
        };
        fs::create_dir_all(&bench.folder)?;
        let members = Variant::ALL.map(|variant| format!("\"{}\"", variant.name()));
        fs::write(
            bench.folder.join("Cargo.toml"),
            format!(
                "[workspace]\nresolver = \"3\"\nmembers = [{}]\n",
                members.join(", ")
            ),
        )?;
        // The same versions as ours, so that nothing is looked up.
        fs::copy(root.join("Cargo.lock"), bench.folder.join("Cargo.lock"))?;
        for variant in Variant::ALL {
            let folder = bench.folder.join(variant.name());
            fs::create_dir_all(folder.join("src"))?;
            let greenroom = root.join("actor").canonicalize()?;
            fs::write(
                folder.join("Cargo.toml"),
                format!(
                    "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                     [dependencies]\ngreenroom = {{ path = {greenroom:?} }}\n",
                    variant.name()
                ),
            )?;
            fs::write(folder.join("src/lib.rs"), source(shape, variant))?;
        }
        Ok(bench)
    }

    /// The shortest of some runs of the compiler over one crate.
    fn check(&self, variant: Variant) -> io::Result<Duration> {
        let mut shortest = Duration::MAX;
        // The first one builds what it depends on.
        for run in 0..=RUNS {
            let source = self.folder.join(variant.name()).join("src/lib.rs");
            fs::OpenOptions::new()
                .append(true)
                .open(source)?
                .set_modified(std::time::SystemTime::now())?;
            let begun = Instant::now();
            self.cargo(&["check", "--offline", "-q", "-p", variant.name()])?;
            if run > 0 {
                shortest = shortest.min(begun.elapsed());
            }
        }
        Ok(shortest)
    }

    /// How many bytes the attribute adds for each message, as the compiler prints them.
    fn bytes_per_message(&self) -> io::Result<usize> {
        let expanded = |variant: Variant| -> io::Result<usize> {
            let output = self.cargo(&[
                "rustc",
                "--offline",
                "-q",
                "--profile",
                "check",
                "-p",
                variant.name(),
                "--",
                "-Zunpretty=expanded",
            ])?;
            // Indentation is for people.
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(text.lines().map(|line| line.trim_start().len() + 1).sum())
        };
        let added = expanded(Variant::Actors)? - expanded(Variant::Plain)?;
        Ok(added / (self.shape.actors * self.shape.messages))
    }

    fn cargo(&self, arguments: &[&str]) -> io::Result<Output> {
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .env("CARGO_INCREMENTAL", "0")
            // Lets a stable compiler print what it expands.
            .env("RUSTC_BOOTSTRAP", "1")
            .env_remove("RUSTFLAGS")
            .output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("cargo {arguments:?}: {text}")));
        }
        Ok(output)
    }
}

/// One message in four waits, one in four may fail.
fn source(shape: Shape, variant: Variant) -> String {
    let mut text = String::from("#![allow(unused)]\nuse greenroom::prelude::*;\n");
    for actor in 0..shape.actors {
        let attribute = match variant {
            Variant::Plain | Variant::Awaited => "",
            Variant::Actors | Variant::Called => "#[actor]\n",
        };
        let mut block = String::new();
        let mut calls = String::new();
        for message in 0..shape.messages {
            let (head, tail) = match message % 4 {
                0 => ("pub fn", "u64 { self.sum += by; self.sum }"),
                1 => ("pub async fn", "u64 { self.sum += by; self.sum }"),
                2 => (
                    "pub fn",
                    "Result<u64, String> { self.sum += by; Ok(self.sum) }",
                ),
                _ => ("pub fn", "String { self.sum += by; name }"),
            };
            let head = match variant {
                Variant::Awaited => "pub async fn",
                _ => head,
            };
            let name = format!("message_{message}");
            writeln!(
                block,
                "    {head} {name}(&mut self, by: u64, name: String) -> {tail}"
            )
            .expect("a string takes everything");
            let told = match variant {
                Variant::Called => ".tell()",
                _ => "",
            };
            writeln!(
                calls,
                "    let _ = addr.{name}(1, String::new()).await;\n    \
                 let _ = addr.{name}(1, String::new()){told}.await;"
            )
            .expect("a string takes everything");
        }
        writeln!(
            text,
            "pub struct Actor{actor} {{ sum: u64 }}\n{attribute}impl Actor{actor} {{\n{block}}}"
        )
        .expect("a string takes everything");
        let target = match variant {
            Variant::Plain | Variant::Actors => continue,
            Variant::Awaited => format!("mut addr: Actor{actor}"),
            Variant::Called => format!("addr: Addr<Actor{actor}>"),
        };
        writeln!(text, "pub async fn calls_{actor}({target}) {{\n{calls}}}")
            .expect("a string takes everything");
    }
    text
}
