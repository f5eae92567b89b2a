//! Support for the tests of what the framework promises.
//!
//! Every test runs its body through [`bounded`] or [`on_shards`], so that a hang is a failure with a name and not a
//! run that never ends.

#[cfg(doctest)]
mod book;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom::{Counts, Handle};

/// How long a body may take. Bodies take milliseconds; a loaded machine may need longer.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a body on a thread of its own and waits for its end.
///
/// # Panics
/// If the body panics, with its payload, or does not end within [`PATIENCE`].
pub fn bounded<R: Send + 'static>(what: &str, body: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        // The receiver is gone only if this took too long.
        drop(done.send(catch_unwind(AssertUnwindSafe(body))));
    });
    match ended.recv_timeout(PATIENCE) {
        Ok(Ok(value)) => value,
        Ok(Err(payload)) => resume_unwind(payload),
        Err(_) => panic!("{what} did not end within {PATIENCE:?}: it hangs"),
    }
}

/// Runs a body on fresh systems, one for each number of shards; the systems are dropped after it.
pub fn on_shards(counts: &[usize], body: impl Fn(&System) + Send + Sync + 'static) {
    let body = Arc::new(body);
    for &count in counts {
        let body = body.clone();
        bounded(&format!("the body on {count} shards"), move || {
            let system = start(count);
            body(&system);
        });
    }
}

/// Starts a system with the smallest links there are, so that they are often full.
///
/// # Panics
/// If the system does not start.
#[must_use]
pub fn start(shards: usize) -> System {
    let builder = System::builder().shards(shards).pin(false);
    builder
        .runtime(|runtime| runtime.link_bytes(4096))
        .start()
        .expect("a system starts")
}

/// Starts a system whose actors have hardly any time to stop before they are killed.
///
/// # Panics
/// If the system does not start.
#[must_use]
pub fn start_hasty(shards: usize) -> System {
    let builder = System::builder().shards(shards).pin(false);
    let builder = builder.stop_grace(Duration::from_millis(20));
    builder.start().expect("a system starts")
}

/// Waits for a message of a handler or of a drop.
///
/// # Panics
/// If it does not come.
#[track_caller]
pub fn hear<T>(from: &mpsc::Receiver<T>) -> T {
    from.recv_timeout(PATIENCE).expect("the event comes")
}

/// The last shard of a system: the first one too if there is one shard.
///
/// # Panics
/// Never: a system has at most 1024 shards.
#[must_use]
pub fn last_shard(system: &Handle) -> u16 {
    u16::try_from(system.shard_count() - 1).expect("at most 1024 shards")
}

/// Waits until something holds that no event tells of.
///
/// # Panics
/// If it does not within [`PATIENCE`].
#[track_caller]
pub fn bounded_wait(mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "it does not come to hold");
        thread::yield_now();
    }
}

/// What the shards of a system have counted.
#[must_use]
pub fn counts(system: &System) -> Counts {
    system.block_on(system.counts())
}

/// Lets the two shards see everything the other one had published before this call: the loop takes jobs before records,
/// so the third round trip comes after the records of the first.
pub async fn settle(system: &Handle, shard: u16) {
    for _ in 0..4 {
        system
            .runtime()
            .spawn_on(shard, || async { yield_now().await })
            .await
            .expect("the shard runs");
        // If the other shard was so fast that nothing had to be waited for, this turn has published nothing yet.
        yield_now().await;
    }
}

/// The program of an example, built beside the running test and the same way.
///
/// # Panics
/// If it does not build.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    // This is <target>/<profile>/deps/<test>. Cargo sees to it that one build waits for another.
    let test = env::current_exe().expect("the test has a path");
    let profile = test.parent().and_then(Path::parent);
    let profile = profile.expect("a test lies in two folders");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "greenroom-examples"]);
    build.args(["--example", name]);
    build.arg("--target-dir");
    build.arg(profile.parent().expect("a profile lies in a target"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().expect("cargo runs");
    assert!(status.success(), "the example {name} does not build");
    profile.join("examples").join(name)
}

/// Polls a future once.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

/// Counts itself up and down, and asserts that it is dropped on its shard while the shard is alive.
#[derive(Debug)]
pub struct Homely {
    home: greenroom::ShardId,
    dropped: mpsc::Sender<bool>,
}

impl Homely {
    /// A value that must be dropped on the calling shard.
    ///
    /// # Panics
    /// If the calling thread is no shard.
    #[must_use]
    pub fn new(dropped: mpsc::Sender<bool>) -> Self {
        Self {
            home: greenroom::runtime::current_shard().expect("made on a shard"),
            dropped,
        }
    }
}

impl Drop for Homely {
    fn drop(&mut self) {
        // The test may have ended.
        self.dropped
            .send(greenroom::runtime::current_shard() == Some(self.home))
            .ok();
    }
}

/// Notes what it is sent, in order. Its mailbox has `N` places.
#[derive(Debug, Default)]
pub struct Ledger<const N: usize> {
    seen: Vec<(u32, u64)>,
    busy: bool,
}

#[actor(mailbox = N)]
impl<const N: usize> Ledger<N> {
    /// Notes a sender's number.
    pub fn note(&mut self, sender: u32, number: u64) -> u64 {
        assert!(!self.busy, "one handler at a time");
        self.seen.push((sender, number));
        number
    }

    /// Notes a sender's number after two turns of the shard.
    pub async fn note_slowly(&mut self, sender: u32, number: u64) -> u64 {
        assert!(!self.busy, "one handler at a time");
        self.busy = true;
        yield_now().await;
        self.seen.push((sender, number));
        yield_now().await;
        self.busy = false;
        number
    }

    /// What was noted.
    pub fn seen(&self) -> Vec<(u32, u64)> {
        self.seen.clone()
    }

    /// Is busy until the gate opens.
    pub async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        // An opener that is dropped opens.
        gate.await.ok();
    }

    /// Blocks the whole shard until it is released.
    pub fn block(&mut self, entered: mpsc::Sender<()>, release: mpsc::Receiver<()>) {
        entered.send(()).expect("the test waits");
        // Dropped to release.
        release.recv_timeout(PATIENCE).ok();
    }

    /// Panics with a text.
    pub fn fail(&mut self, text: String) {
        panic!("{text}");
    }
}

/// Spawns a ledger.
///
/// # Panics
/// If it does not start.
#[must_use]
pub fn ledger<const N: usize>(system: &System, shard: u16) -> Addr<Ledger<N>> {
    system
        .block_on(system.spawn_on(shard, Ledger::default))
        .expect("a ledger starts")
}

/// Blocks a shard; it runs on when the returned sender is dropped.
///
/// # Panics
/// If it is not blocked in time.
#[must_use]
pub fn block_shard(system: &System, shard: u16) -> mpsc::Sender<()> {
    let blocker: Addr<Ledger<1>> = ledger(system, shard);
    let (entered, has_entered) = mpsc::channel();
    let (release, released) = mpsc::channel();
    system
        .block_on(blocker.block(entered, released).tell())
        .expect("the blocker takes it");
    hear(&has_entered);
    release
}
