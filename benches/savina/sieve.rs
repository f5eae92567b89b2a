//! Sieve of Eratosthenes: numbers go through a line of actors, each of which keeps a thousand primes and starts the next
//! actor when it has found them.

use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start};

struct Filter {
    /// Its place in the line.
    number: usize,
    primes: Vec<u64>,
    capacity: usize,
    next: Option<Addr<Filter>>,
}

impl Filter {
    fn new(number: usize, first: u64, capacity: usize) -> Self {
        Self {
            number,
            primes: vec![first],
            capacity,
            next: None,
        }
    }
}

#[actor]
impl Filter {
    pub async fn candidate(&mut self, candidate: u64) -> Result<(), Error> {
        if self
            .primes
            .iter()
            .any(|prime| candidate.is_multiple_of(*prime))
        {
            return Ok(());
        }
        if let Some(next) = self.next {
            next.candidate(candidate).tell().await?;
        } else if self.primes.len() < self.capacity {
            self.primes.push(candidate);
        } else {
            let (number, capacity) = (self.number + 1, self.capacity);
            let next = start(number, move || Filter::new(number, candidate, capacity));
            self.next = Some(next.await?);
        }
        Ok(())
    }

    /// How many primes are here and behind. What was sent before is counted.
    pub async fn count(&self) -> Result<usize, Error> {
        let behind = match self.next {
            Some(next) => next.count().await?,
            None => 0,
        };
        Ok(self.primes.len() + behind)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (limit, capacity, primes) = size.pick((100_000, 1_000, 9_592), (1_000, 50, 168));
    let first = start(0, move || Filter::new(0, 3, capacity)).await?;
    for candidate in (5..limit).step_by(2) {
        first.candidate(candidate).tell().await?;
    }
    // And 2, which no filter ever sees.
    check("the number of primes", first.count().await? + 1, primes)?;
    Ok(limit / 2)
}
