//! Cigarette smokers: an arbiter lets one of two hundred smokers start at a time, a thousand times.

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, busy_wait, check, start, start_many};
use crate::random::Random;

#[derive(Default)]
struct Smoker {
    smoked: u64,
}

#[actor]
impl Smoker {
    /// Answers as soon as it has begun.
    pub fn smoke(&mut self, effort: usize, begun: Reply<()>) {
        begun.send(());
        busy_wait(effort);
        self.smoked += 1;
    }

    pub fn smoked(&self) -> u64 {
        self.smoked
    }
}

struct Arbiter {
    smokers: Vec<Addr<Smoker>>,
    random: Random,
}

#[actor]
impl Arbiter {
    /// Puts what is needed on the table for one smoker after the other. Returns how often they smoked.
    pub async fn serve(&mut self, rounds: u64, effort: usize) -> Result<u64, Error> {
        for _ in 0..rounds {
            let smoker = self.smokers[self.random.below(self.smokers.len())];
            smoker.smoke(self.random.below(effort) + 10).await?;
        }
        let counts = self.smokers.iter().map(|one| one.smoked().into_future());
        Ok(try_join_all(counts).await?.iter().sum())
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (smokers, rounds, effort) = size.pick((200, 1_000, 1_000), (10, 50, 10));
    let smokers = start_many(smokers, |_| Smoker::default()).await?;
    let arbiter = start(0, move || Arbiter {
        smokers,
        random: Random::new(1),
    })
    .await?;
    let smoked = arbiter.serve(rounds, effort).await?;
    check("how often somebody smoked", smoked, rounds)?;
    Ok(2 * rounds)
}
