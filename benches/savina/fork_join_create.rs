//! Fork-join, creating: forty thousand actors are started, do a small piece of work each, and end.

use futures_util::future::try_join_all;
use greenroom::prelude::*;
use greenroom::{Error, Handle};

use crate::harness::{Size, check_close};

struct Worker;

#[actor]
impl Worker {
    /// Works, reports, and stops.
    pub async fn work(&mut self, ctx: &mut Ctx<Self>, parent: Addr<Parent>) -> Result<(), Error> {
        parent.join(work()).tell().await?;
        ctx.stop();
        Ok(())
    }
}

/// The piece of work, the same for all.
pub fn work() -> f64 {
    let sine = std::hint::black_box(37.2_f64).sin();
    sine * sine
}

/// Starts the workers of its shard.
#[derive(Default)]
struct Parent {
    running: u64,
    sum: f64,
    done: Option<Reply<f64>>,
}

#[actor]
impl Parent {
    /// Answers with the sum of the results when all workers have joined.
    pub fn fork(&mut self, ctx: &mut Ctx<Self>, workers: u64, done: Reply<f64>) {
        self.running = workers;
        self.done = Some(done);
        for _ in 0..workers {
            greenroom::spawn(Worker)
                .work(ctx.addr())
                .try_tell()
                .expect("a new mailbox has room");
        }
    }

    pub fn join(&mut self, result: f64) {
        self.sum += result;
        self.running -= 1;
        if self.running == 0
            && let Some(done) = self.done.take()
        {
            done.send(self.sum);
        }
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let workers: u64 = size.pick(40_000, 200);
    let system = Handle::current().expect("the benchmarks run on shards");
    let parents = system.spawn_sharded(|_| Parent::default()).await?;
    let share = workers / parents.shard_count() as u64;
    let forks = parents
        .each()
        .map(|parent| parent.fork(share).into_future());
    let sum: f64 = try_join_all(forks).await?.iter().sum();
    check_close("the sum of the results", sum, workers as f64 * work(), 1e-9)?;
    Ok(2 * workers)
}
