//! One counter on another shard: spawn, tell, ask.

#![expect(
    unreachable_pub,
    reason = "the messages of an actor are public, in a program as in a library"
)]

use std::time::Duration;

use greenroom::prelude::*;

#[derive(Default)]
struct Counter {
    n: u64,
}

#[actor]
impl Counter {
    pub fn add(&mut self, by: u64) {
        self.n += by;
    }

    pub fn get(&self) -> u64 {
        self.n
    }
}

#[expect(clippy::print_stdout, reason = "an example speaks to who runs it")]
fn main() -> Result<(), greenroom::Error> {
    let system = System::start(4)?;
    system.block_on(async {
        let counter = system.spawn_on(2, Counter::default).await?;
        counter.add(5).tell().await?;
        counter.add(5).try_tell()?;
        let n = counter.get().timeout(Duration::from_secs(1)).await?;
        println!("counted to {n}");
        Ok(())
    })
}
