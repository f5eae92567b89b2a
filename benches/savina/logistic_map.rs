//! Logistic map: ten series ask ten computers for their next term, twenty-five thousand times each.

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start};

const RATE: f64 = 3.46;
const RATE_STEP: f64 = 0.0025;

fn rate(series: usize) -> f64 {
    RATE + series as f64 * RATE_STEP
}

fn first_term(series: usize) -> f64 {
    series as f64 * RATE_STEP
}

fn next_term(rate: f64, term: f64) -> f64 {
    rate * term * (1.0 - term)
}

struct Computer {
    rate: f64,
}

#[actor]
impl Computer {
    pub fn next(&self, term: f64) -> f64 {
        next_term(self.rate, term)
    }
}

struct Series {
    term: f64,
}

#[actor]
impl Series {
    /// Returns the last term.
    pub async fn run(&mut self, computer: Addr<Computer>, terms: usize) -> Result<f64, Error> {
        for _ in 0..terms {
            self.term = computer.next(self.term).await?;
        }
        Ok(self.term)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (count, terms) = size.pick((10, 25_000), (4, 100));
    let mut pairs = Vec::new();
    for number in 0..count {
        let term = first_term(number);
        let series = start(number, move || Series { term }).await?;
        // On the next shard: the two of a pair are apart if there is more than one.
        let rate = rate(number);
        let computer = start(number + 1, move || Computer { rate }).await?;
        pairs.push((series, computer));
    }
    let runs = pairs
        .iter()
        .map(|&(series, computer)| series.run(computer, terms).into_future());
    let last: Vec<f64> = try_join_all(runs).await?;
    let expected: Vec<f64> = (0..count)
        .map(|number| {
            let rate = rate(number);
            (0..terms).fold(first_term(number), |term, _| next_term(rate, term))
        })
        .collect();
    check("the last terms", last, expected)?;
    Ok(2 * (terms * count) as u64)
}
