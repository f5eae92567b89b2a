//! Quicksort: an actor sorts a million numbers by having two new actors sort a half each, and so on.

use futures_util::future::try_join;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start};
use crate::random::Random;

struct Sorter {
    /// The shard of the sorter; its children are on this one and on the next.
    number: usize,
    /// So many numbers are sorted without help.
    threshold: usize,
}

#[actor]
impl Sorter {
    /// Sorts, answers and stops.
    pub async fn sort(
        &mut self,
        ctx: &mut Ctx<Self>,
        mut numbers: Vec<u64>,
    ) -> Result<Vec<u64>, Error> {
        ctx.stop();
        if numbers.len() < self.threshold {
            numbers.sort_unstable();
            return Ok(numbers);
        }
        let pivot = numbers[numbers.len() / 2];
        let (less, rest): (Vec<_>, Vec<_>) = numbers.into_iter().partition(|&one| one < pivot);
        let (same, more): (Vec<_>, Vec<_>) = rest.into_iter().partition(|&one| one == pivot);
        let (less, more) = try_join(self.delegate(0, less), self.delegate(1, more)).await?;
        Ok([less, same, more].concat())
    }

    async fn delegate(&self, offset: usize, numbers: Vec<u64>) -> Result<Vec<u64>, Error> {
        let number = self.number + offset;
        let threshold = self.threshold;
        let child = start(number, move || Sorter { number, threshold }).await?;
        Ok(child.sort(numbers).await?)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (count, threshold) = size.pick((1_000_000, 2_048), (2_000, 64));
    let mut random = Random::new(1024);
    let numbers: Vec<_> = (0..count).map(|_| random.next() >> 4).collect();
    let sum = |numbers: &[u64]| numbers.iter().copied().fold(0, u64::wrapping_add);
    let expected = sum(&numbers);
    let sorter = start(0, move || Sorter {
        number: 0,
        threshold,
    })
    .await?;
    let sorted = sorter.sort(numbers).await?;
    check("whether they are in order", sorted.is_sorted(), true)?;
    check("how many there are", sorted.len(), count)?;
    check("their sum", sum(&sorted), expected)?;
    Ok(2 * (count / threshold) as u64)
}
