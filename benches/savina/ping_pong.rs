//! Ping-pong: one actor asks another, and waits for each answer before it asks again.

use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start};

#[derive(Default)]
struct Pong {
    pings: u64,
}

#[actor]
impl Pong {
    pub fn ping(&mut self) -> u64 {
        self.pings += 1;
        self.pings
    }
}

struct Ping {
    pong: Addr<Pong>,
}

#[actor]
impl Ping {
    pub async fn play(&mut self, pings: u64) -> Result<u64, Error> {
        let mut pongs = 0;
        for _ in 0..pings {
            pongs = self.pong.ping().await?;
        }
        Ok(pongs)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let pings = size.pick(40_000, 500);
    let pong = start(1, Pong::default).await?;
    let ping = start(0, move || Ping { pong }).await?;
    check("the number of pongs", ping.play(pings).await?, pings)?;
    Ok(2 * pings)
}
