//! Concurrent dictionary: twenty actors read and write one map; every tenth access writes.

use std::collections::HashMap;

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start, start_many};
use crate::random::Random;

/// Of a hundred accesses.
const WRITES: usize = 10;

struct Dictionary {
    entries: HashMap<usize, usize>,
}

#[actor]
impl Dictionary {
    pub fn read(&self, key: usize) -> Option<usize> {
        self.entries.get(&key).copied()
    }

    /// Returns what was there before.
    pub fn write(&mut self, key: usize, value: usize) -> Option<usize> {
        self.entries.insert(key, value)
    }
}

struct Client {
    random: Random,
}

#[actor]
impl Client {
    /// Returns how many values it saw. A value that is there belongs to its key: it is a multiple of it.
    pub async fn run(
        &mut self,
        dictionary: Addr<Dictionary>,
        keys: usize,
        accesses: u64,
    ) -> Result<u64, Error> {
        let mut seen = 0;
        for _ in 0..accesses {
            let key = self.random.below(keys) + 1;
            let value = if self.random.below(100) < WRITES {
                let value = key * self.random.below(1000);
                dictionary.write(key, value).await?
            } else {
                dictionary.read(key).await?
            };
            seen += u64::from(value.is_some_and(|value| value.is_multiple_of(key)));
        }
        Ok(seen)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (clients, accesses, keys) = size.pick((20, 10_000, 524_287), (4, 100, 1000));
    let dictionary = start(0, move || Dictionary {
        entries: (1..=keys).map(|key| (key, key)).collect(),
    })
    .await?;
    let clients = start_many(clients, |number| Client {
        random: Random::new(number as u64),
    })
    .await?;
    let runs = clients
        .iter()
        .map(|client| client.run(dictionary, keys, accesses).into_future());
    let seen: u64 = try_join_all(runs).await?.iter().sum();
    let expected = accesses * clients.len() as u64;
    check("the number of values that were found", seen, expected)?;
    Ok(2 * expected)
}
