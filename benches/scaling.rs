//! How costs grow with the work: with more actors, with deeper mailboxes, and with more shards than CPUs.
//!
//! `cargo run --release -p greenroom-benches --bin scaling [-- actors] [mailbox] [shards]` prints a table for each of the
//! three. A cell is the median of three runs, each with a system of its own, and every run checks its result. It is flat
//! where a cost does not grow.

#![expect(clippy::print_stdout, reason = "a benchmark prints its tables")]
#![expect(
    unreachable_pub,
    reason = "the messages of an actor are public, in a program as in a library"
)]

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

const RUNS: usize = 3;
/// Messages of a run, however many actors share them.
const MESSAGES: usize = 1_000_000;

/// An actor with a mailbox for so many messages.
#[derive(Default)]
struct Counter<const ROOM: usize> {
    sum: u64,
}

#[actor(mailbox = ROOM)]
impl<const ROOM: usize> Counter<ROOM> {
    pub fn add(&mut self, by: u64) {
        self.sum += by;
    }

    pub fn sum(&self) -> u64 {
        self.sum
    }
}

fn main() -> Result<(), Error> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (name, table) in [
        ("actors", actors as fn() -> Result<(), Error>),
        ("mailbox", mailboxes),
        ("shards", shards),
    ] {
        if wanted.is_empty() || wanted.iter().any(|one| one == name) {
            table()?;
        }
    }
    Ok(())
}

/// The medians of the runs, column by column.
fn medians<const N: usize>(run: impl Fn() -> Result<[f64; N], Error>) -> Result<[f64; N], Error> {
    let runs = (0..RUNS).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    Ok(std::array::from_fn(|column| {
        let mut cells: Vec<f64> = runs.iter().map(|run| run[column]).collect();
        cells.sort_by(f64::total_cmp);
        cells[RUNS / 2]
    }))
}

fn ns(elapsed: Duration, count: usize) -> f64 {
    elapsed.as_secs_f64() * 1e9 / count as f64
}

/// Actors of one shard, which get the same messages between them, one after the other.
fn actors() -> Result<(), Error> {
    println!(
        "{:>10}{:>14}{:>14}{:>14}",
        "actors", "spawn ns", "tell ns", "ask ns"
    );
    for count in [1, 1_000, 1_000_000] {
        let [spawn, tell, ask] = medians(|| {
            let system = System::start(1)?;
            system.run_on(0, move || share_among(count))
        })?;
        println!("{count:>10}{spawn:>14.1}{tell:>14.1}{ask:>14.1}");
    }
    println!();
    Ok(())
}

async fn share_among(count: usize) -> Result<[f64; 3], Error> {
    let start = Instant::now();
    let actors: Vec<_> = (0..count)
        .map(|_| greenroom::spawn(Counter::<256>::default()))
        .collect();
    actors[count - 1].sum().await?;
    let spawn = ns(start.elapsed(), count);

    let start = Instant::now();
    for actor in actors.iter().cycle().take(MESSAGES) {
        actor.add(1).tell().await?;
    }
    let mut sum = 0;
    for actor in &actors {
        sum += actor.sum().await?;
    }
    let tell = ns(start.elapsed(), MESSAGES + count);
    assert_eq!(sum, MESSAGES as u64, "every message is handled once");

    let start = Instant::now();
    for actor in actors.iter().cycle().take(MESSAGES) {
        actor.sum().await?;
    }
    let ask = ns(start.elapsed(), MESSAGES);
    Ok([spawn, tell, ask])
}

/// One sender and one actor: a steady flow through mailboxes of all sizes, and bursts that fill them.
fn mailboxes() -> Result<(), Error> {
    println!(
        "{:>10}{:>14}{:>14}{:>14}",
        "room", "flow ns", "burst ns", "cross ns"
    );
    mailbox::<1>()?;
    mailbox::<10>()?;
    mailbox::<100>()?;
    mailbox::<1_000>()?;
    mailbox::<10_000>()?;
    mailbox::<100_000>()?;
    println!();
    Ok(())
}

fn mailbox<const ROOM: usize>() -> Result<(), Error> {
    let [flow, burst, cross] = medians(|| {
        let system = System::start(2)?;
        system.run_on(0, move || async {
            Ok([
                flow::<ROOM>(0).await?,
                bursts::<ROOM>().await?,
                flow::<ROOM>(1).await?,
            ])
        })
    })?;
    println!("{ROOM:>10}{flow:>14.1}{burst:>14.1}{cross:>14.1}");
    Ok(())
}

/// Waits whenever the mailbox is full.
async fn flow<const ROOM: usize>(shard: u16) -> Result<f64, Error> {
    let system = greenroom::Handle::current().expect("this runs on a shard");
    let counter = system.spawn_on(shard, Counter::<ROOM>::default).await?;
    // One place is one wait for each message, across threads: fewer of them tell as much.
    let messages = if shard > 0 && ROOM < 100 {
        MESSAGES / 100
    } else {
        MESSAGES
    };
    let start = Instant::now();
    for _ in 0..messages {
        counter.add(1).tell().await?;
    }
    assert_eq!(counter.sum().await?, messages as u64);
    Ok(ns(start.elapsed(), messages))
}

/// Fills the mailbox to the last place before anything is handled, again and again.
async fn bursts<const ROOM: usize>() -> Result<f64, Error> {
    let counter = greenroom::spawn(Counter::<ROOM>::default());
    // It has its first turn now, so that each burst finds it idle.
    counter.sum().await?;
    let bursts = MESSAGES / ROOM;
    let start = Instant::now();
    for burst in 1..=bursts {
        for _ in 0..ROOM {
            counter.add(1).try_tell()?;
        }
        assert_eq!(counter.sum().await?, (burst * ROOM) as u64);
    }
    Ok(ns(start.elapsed(), bursts * ROOM))
}

/// More shards than CPUs: actors on all of them tell and ask each other, the same number of messages altogether.
fn shards() -> Result<(), Error> {
    println!(
        "{:>10}{:>14}{:>14}{:>14}",
        "shards", "start ms", "tell ns", "ask ns"
    );
    for count in [2, 4, 8, 16, 32, 64] {
        let [start, tell, ask] = medians(|| {
            let start = Instant::now();
            let system = System::start(count)?;
            let started = start.elapsed().as_secs_f64() * 1e3;
            let [tell, ask] = system.run_on(0, all_to_all)?;
            Ok([started, tell, ask])
        })?;
        println!("{count:>10}{start:>14.1}{tell:>14.1}{ask:>14.1}");
    }
    println!();
    Ok(())
}

/// Sends to the counters of all shards in turn.
struct Sender {
    counters: Sharded<Counter<256>>,
}

#[actor]
impl Sender {
    pub async fn tell_all(&self, messages: usize) -> Result<(), Error> {
        for counter in self.others().take(messages) {
            counter.add(1).tell().await?;
        }
        // A tell is done when it is on its way. The answer to what was sent behind it says that it was handled.
        self.ask_all(self.counters.shard_count()).await
    }

    pub async fn ask_all(&self, messages: usize) -> Result<(), Error> {
        for counter in self.others().take(messages) {
            counter.sum().await?;
        }
        Ok(())
    }

    /// The counters of all other shards, again and again.
    fn others(&self) -> impl Iterator<Item = Addr<Counter<256>>> {
        let here = self.counters.local();
        let all: Vec<_> = self.counters.each().collect();
        all.into_iter().filter(move |one| *one != here).cycle()
    }
}

async fn all_to_all() -> Result<[f64; 2], Error> {
    let system = greenroom::Handle::current().expect("this runs on a shard");
    let counters = system.spawn_sharded(|_| Counter::default()).await?;
    let shared = counters.clone();
    let senders = system
        .spawn_sharded(move |_| Sender {
            counters: shared.clone(),
        })
        .await?;
    let count = senders.shard_count();

    let share = MESSAGES / count;
    let start = Instant::now();
    try_join_all(senders.each().map(|one| one.tell_all(share).into_future())).await?;
    let sums = try_join_all(counters.each().map(|one| one.sum().into_future())).await?;
    let tell = ns(start.elapsed(), share * count);
    let sum: u64 = sums.into_iter().sum();
    assert_eq!(sum, (share * count) as u64, "every message is handled once");

    let share = MESSAGES / 50 / count;
    let start = Instant::now();
    try_join_all(senders.each().map(|one| one.ask_all(share).into_future())).await?;
    let ask = ns(start.elapsed(), share * count);
    Ok([tell, ask])
}
