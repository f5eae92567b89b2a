//! Concurrent sorted list: twenty actors add to one sorted list, look things up in it, and ask for its length.

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start, start_many};
use crate::random::Random;

/// Of a hundred accesses.
const SIZES: usize = 1;
const WRITES: usize = 10;
const VALUES: usize = 1 << 30;

#[derive(Default)]
struct SortedList {
    values: Vec<usize>,
}

#[actor]
impl SortedList {
    pub fn add(&mut self, value: usize) {
        let place = self.values.partition_point(|&other| other < value);
        self.values.insert(place, value);
    }

    pub fn contains(&self, value: usize) -> bool {
        self.values.binary_search(&value).is_ok()
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_sorted(&self) -> bool {
        self.values.is_sorted()
    }
}

struct Client {
    random: Random,
}

#[actor]
impl Client {
    /// Returns how many values it added. Those it added it finds again, and the list never shrinks.
    pub async fn run(&mut self, list: Addr<SortedList>, accesses: u64) -> Result<usize, Error> {
        let mut added = Vec::new();
        let mut len = 0;
        for _ in 0..accesses {
            let chance = self.random.below(100);
            if chance < SIZES {
                let now = list.len().await?;
                assert!(now >= len.max(added.len()), "the list shrank to {now}");
                len = now;
            } else if chance < SIZES + WRITES {
                let value = self.random.below(VALUES);
                list.add(value).await?;
                added.push(value);
            } else {
                let mine = self.random.below(added.len() + 1);
                let value = added.get(mine).copied();
                let found = list.contains(value.unwrap_or(VALUES)).await?;
                assert_eq!(found, value.is_some(), "whether the list has {value:?}");
            }
        }
        Ok(added.len())
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (clients, accesses) = size.pick((20, 8_000), (4, 100));
    let list = start(0, SortedList::default).await?;
    let clients = start_many(clients, |number| Client {
        random: Random::new(number as u64),
    })
    .await?;
    let runs = clients
        .iter()
        .map(|client| client.run(list, accesses).into_future());
    let added: usize = try_join_all(runs).await?.iter().sum();
    check("the length of the list", list.len().await?, added)?;
    check("whether it is sorted", list.is_sorted().await?, true)?;
    Ok(2 * accesses * clients.len() as u64)
}
