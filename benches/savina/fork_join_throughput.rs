//! Fork-join, throughput: sixty actors get ten thousand messages each, in turn.

use greenroom::Error;
use greenroom::prelude::*;

use crate::fork_join_create::work;
use crate::harness::{Size, check, start_many};

#[derive(Default)]
struct Worker {
    handled: u64,
    sum: f64,
}

#[actor]
impl Worker {
    pub fn work(&mut self) {
        self.handled += 1;
        self.sum += work();
    }

    pub fn handled(&self) -> u64 {
        self.handled
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (actors, messages) = size.pick((60, 10_000), (6, 100));
    let workers = start_many(actors, |_| Worker::default()).await?;
    for _ in 0..messages {
        for worker in &workers {
            worker.work().tell().await?;
        }
    }
    for worker in &workers {
        check("what a worker handled", worker.handled().await?, messages)?;
    }
    Ok(messages * workers.len() as u64)
}
