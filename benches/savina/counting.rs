//! Counting: one actor tells another a million times to count, then asks how far it got.

use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start};

#[derive(Default)]
struct Counter {
    count: u64,
}

#[actor]
impl Counter {
    pub fn increment(&mut self) {
        self.count += 1;
    }

    pub fn count(&self) -> u64 {
        self.count
    }
}

struct Producer {
    counter: Addr<Counter>,
}

#[actor]
impl Producer {
    /// Waits whenever the mailbox of the counter is full.
    pub async fn produce(&mut self, messages: u64) -> Result<u64, Error> {
        for _ in 0..messages {
            self.counter.increment().tell().await?;
        }
        Ok(self.counter.count().await?)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let messages = size.pick(1_000_000, 2_000);
    let counter = start(1, Counter::default).await?;
    let producer = start(0, move || Producer { counter }).await?;
    check("the count", producer.produce(messages).await?, messages)?;
    Ok(messages)
}
