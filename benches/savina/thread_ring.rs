//! Thread ring: a token goes round a ring of a hundred actors, a hundred thousand hops.

use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start_many};

#[derive(Default)]
struct Station {
    next: Option<Addr<Station>>,
    /// Who waits for the token, at the station where it set out.
    done: Option<Reply<u64>>,
}

#[actor]
impl Station {
    pub fn connect(&mut self, next: Addr<Station>) {
        self.next = Some(next);
    }

    /// Sends the token off; answers when it has come home from its last round, with the hops it made.
    pub fn start(&mut self, hops: u64, done: Reply<u64>) {
        self.done = Some(done);
        self.pass(0, hops);
    }

    pub fn token(&mut self, made: u64, left: u64) {
        if left == 0
            && let Some(done) = self.done.take()
        {
            return done.send(made);
        }
        self.pass(made, left);
    }

    fn pass(&self, made: u64, left: u64) {
        let next = self.next.expect("the ring is closed before it starts");
        next.token(made + 1, left.saturating_sub(1))
            .try_tell()
            .expect("one token fits in every mailbox");
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (stations, hops) = size.pick((100, 100_000), (10, 1_000));
    let ring = start_many(stations, |_| Station::default()).await?;
    for (number, station) in ring.iter().enumerate() {
        station.connect(ring[(number + 1) % ring.len()]).await?;
    }
    check("the number of hops", ring[0].start(hops).await?, hops)?;
    Ok(hops)
}
