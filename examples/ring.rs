//! A token goes round a ring of actors spread over the shards; prints hops per second.
//!
//! `cargo run --release --example ring -- [SHARDS] [ACTORS] [ROUNDS]`

#![expect(
    unreachable_pub,
    reason = "the messages of an actor are public, in a program as in a library"
)]

use std::time::Instant;

use greenroom::prelude::*;

/// A station of the ring.
#[derive(Default)]
struct Station {
    next: Option<Addr<Station>>,
    /// At the first station: who waits for the token to have gone round often enough.
    done: Option<Reply<u64>>,
    hops: u64,
}

#[actor]
impl Station {
    pub fn connect(&mut self, next: Addr<Station>) {
        self.next = Some(next);
    }

    /// Sends the token off; answers when it has made its last hop.
    pub fn start(&mut self, rounds: u64, done: Reply<u64>) {
        self.done = Some(done);
        self.pass(rounds);
    }

    /// Takes the token and hands it on. `left` counts the rounds it has yet to go.
    pub fn take(&mut self, left: u64) {
        self.hops += 1;
        match self.done.take() {
            Some(done) if left == 0 => done.send(self.hops),
            Some(done) => {
                self.done = Some(done);
                self.pass(left);
            }
            None => self.pass(left),
        }
    }

    fn pass(&self, left: u64) {
        // The first station ends a round.
        let left = if self.done.is_some() {
            left.saturating_sub(1)
        } else {
            left
        };
        if let Some(next) = self.next {
            next.take(left)
                .try_tell()
                .expect("one token fits in every mailbox");
        }
    }
}

#[expect(clippy::print_stdout, reason = "an example speaks to who runs it")]
fn main() -> Result<(), greenroom::Error> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let mut next = |default| args.next().unwrap_or(Ok(default));
    let (shards, actors, rounds) = (next(2)?, next(100)?, next(10_000)?);
    let system = System::start(usize::try_from(shards)?)?;
    let hops = system.block_on(async {
        let mut stations = Vec::new();
        // Blocks of neighbours share a shard, so that a round crosses from shard to shard once each.
        for place in 0..actors.max(1) {
            let shard = u16::try_from(place * shards / actors.max(1))?;
            stations.push(system.spawn_on(shard, Station::default).await?);
        }
        for (place, station) in stations.iter().enumerate() {
            station
                .connect(stations[(place + 1) % stations.len()])
                .await?;
        }
        let start = Instant::now();
        let visits = stations[0].start(rounds).await?;
        let hops = visits * actors.max(1);
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{hops} hops over {shards} shards in {seconds:.3} s: {:.0} hops/s",
            hops as f64 / seconds
        );
        Ok::<_, greenroom::Error>(hops)
    })?;
    assert_eq!(
        hops,
        rounds * actors.max(1),
        "the token went round as often as it should"
    );
    Ok(())
}
