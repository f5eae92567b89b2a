//! Dining philosophers: twenty of them, ten thousand meals each. An arbiter hands out forks or refuses, and whoever is
//! refused asks again.

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start, start_many};

struct Table {
    /// Whether the fork to the left of each seat lies on the table.
    forks: Vec<bool>,
    meals: u64,
}

#[actor]
impl Table {
    /// Hands out both forks of a seat, or none.
    pub fn take_forks(&mut self, seat: usize) -> bool {
        let (left, right) = (seat, (seat + 1) % self.forks.len());
        let granted = self.forks[left] && self.forks[right];
        if granted {
            self.forks[left] = false;
            self.forks[right] = false;
            self.meals += 1;
        }
        granted
    }

    pub fn put_forks_back(&mut self, seat: usize) {
        let right = (seat + 1) % self.forks.len();
        self.forks[seat] = true;
        self.forks[right] = true;
    }

    pub fn meals(&self) -> u64 {
        self.meals
    }

    pub fn is_laid(&self) -> bool {
        self.forks.iter().all(|&fork| fork)
    }
}

struct Philosopher {
    seat: usize,
    table: Addr<Table>,
}

#[actor]
impl Philosopher {
    /// Returns how often it asked.
    pub async fn dine(&mut self, meals: u64) -> Result<u64, Error> {
        let mut asked = 0;
        for _ in 0..meals {
            asked += 1;
            while !self.table.take_forks(self.seat).await? {
                asked += 1;
            }
            self.table.put_forks_back(self.seat).tell().await?;
        }
        Ok(asked)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (seats, meals) = size.pick((20, 10_000), (5, 20));
    let table = start(0, move || Table {
        forks: vec![true; seats],
        meals: 0,
    })
    .await?;
    let philosophers = start_many(seats, move |seat| Philosopher { seat, table }).await?;
    let dinners = philosophers.iter().map(|one| one.dine(meals).into_future());
    let asked: u64 = try_join_all(dinners).await?.iter().sum();
    let eaten = meals * philosophers.len() as u64;
    check("the number of meals", table.meals().await?, eaten)?;
    check("whether all forks are back", table.is_laid().await?, true)?;
    Ok(2 * asked + eaten)
}
