//! Filter bank: samples go through eight banks of filters, actor after actor, and are added up again.

use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start};

/// What an actor of a bank does with the samples that come in.
enum Filter {
    /// Lets each out so much later; before that come zeros.
    Delay { samples: Vec<f64>, at: usize },
    /// From the time when it has seen enough: the sum of the latest, each with its coefficient.
    Convolve {
        coefficients: Vec<f64>,
        samples: Vec<f64>,
        seen: usize,
    },
    /// Lets one out of so many pass, and zeros instead of the others.
    Thin { rate: usize, at: usize },
}

impl Filter {
    fn delay(length: usize) -> Self {
        Self::Delay {
            samples: vec![0.0; length],
            at: 0,
        }
    }

    fn convolve(coefficients: Vec<f64>) -> Self {
        Self::Convolve {
            samples: vec![0.0; coefficients.len()],
            coefficients,
            seen: 0,
        }
    }

    fn feed(&mut self, sample: f64) -> Option<f64> {
        match self {
            Self::Delay { samples, at } => {
                let late = std::mem::replace(&mut samples[*at], sample);
                *at = (*at + 1) % samples.len();
                Some(late)
            }
            Self::Convolve {
                coefficients,
                samples,
                seen,
            } => {
                let length = coefficients.len();
                samples[*seen % length] = sample;
                *seen += 1;
                // The oldest first, which lies behind the one that has just come.
                let (newer, older) = samples.split_at(*seen % length);
                let (first, last) = coefficients.split_at(older.len());
                (*seen >= length).then(|| product(first, older) + product(last, newer))
            }
            Self::Thin { rate, at } => {
                let passes = *at == 0;
                *at = (*at + 1) % *rate;
                Some(if passes { sample } else { 0.0 })
            }
        }
    }
}

/// The sum of the products of each two, in lanes that do not wait for each other.
fn product(ones: &[f64], others: &[f64]) -> f64 {
    let (ones, ones_left) = ones.as_chunks::<8>();
    let (others, others_left) = others.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (ones, others) in ones.iter().zip(others) {
        for ((sum, one), other) in sums.iter_mut().zip(ones).zip(others) {
            *sum += one * other;
        }
    }
    let left = ones_left.iter().zip(others_left);
    sums.iter().sum::<f64>() + left.map(|(one, other)| one * other).sum::<f64>()
}

struct Stage {
    filter: Filter,
    next: Next,
}

#[derive(Clone, Copy)]
enum Next {
    Stage(Addr<Stage>),
    /// The last of a bank, which has this number.
    Sum(Addr<Sum>, usize),
}

impl Next {
    async fn sample(self, sample: f64) {
        let told = match self {
            Self::Stage(stage) => stage.sample(sample).tell().await.is_ok(),
            Self::Sum(sum, bank) => sum.add(bank, sample).tell().await.is_ok(),
        };
        assert!(told, "a stage outlives the stages before it");
    }
}

#[actor]
impl Stage {
    pub async fn sample(&mut self, sample: f64) {
        if let Some(sample) = self.filter.feed(sample) {
            self.next.sample(sample).await;
        }
    }
}

/// Adds up what the banks have made of each sample.
#[derive(Default)]
struct Sum {
    /// For each bank how many samples it sent, and the sum of all.
    banks: Vec<(u64, f64)>,
    expected: u64,
    done: Option<Reply<Vec<f64>>>,
}

#[actor]
impl Sum {
    pub fn add(&mut self, bank: usize, sample: f64) {
        let (count, sum) = &mut self.banks[bank];
        *count += 1;
        *sum += sample;
        self.answer();
    }

    /// Answers with the sum of each bank when all samples have come.
    pub fn sums(&mut self, done: Reply<Vec<f64>>) {
        self.done = Some(done);
        self.answer();
    }

    fn answer(&mut self) {
        if self.banks.iter().all(|bank| bank.0 == self.expected)
            && let Some(done) = self.done.take()
        {
            done.send(self.banks.iter().map(|bank| bank.1).collect());
        }
    }
}

/// The filters of a bank, in the order in which samples go through them.
fn filters(bank: usize, length: usize) -> [Filter; 5] {
    let analysis = (0..length).map(|i| ((i + 1) * (bank + 1)) as f64 / length as f64);
    let synthesis = (0..length).map(|i| ((i + bank) % 7 + 1) as f64);
    [
        Filter::delay(length - 1),
        Filter::convolve(analysis.collect()),
        Filter::Thin {
            rate: length,
            at: 0,
        },
        Filter::delay(length - 1),
        Filter::convolve(synthesis.collect()),
    ]
}

fn signal(number: usize) -> f64 {
    (number % 1000 + 1) as f64
}

/// The sum of what comes out of a bank, from the convolutions that the thinning does not throw away.
fn expected(bank: usize, length: usize, samples: usize) -> f64 {
    let [_, analysis, _, _, synthesis] = filters(bank, length);
    let coefficients = |filter| match filter {
        Filter::Convolve { coefficients, .. } => coefficients,
        _ => unreachable!("by their place"),
    };
    let (analysis, synthesis) = (coefficients(analysis), coefficients(synthesis));
    let delayed = |at: usize| (at + 1).checked_sub(length).map_or(0.0, signal);
    let convolved = |at: usize| -> f64 {
        let terms = analysis.iter().enumerate();
        terms.map(|(i, one)| one * delayed(at + i)).sum()
    };
    // What the second convolution sees, all but the zeros: where, and what.
    let thinned = samples - length + 1;
    let seen: Vec<_> = (0..thinned)
        .step_by(length)
        .map(|at| (at + length - 1, convolved(at)))
        .collect();
    let convolved_again = |newest| -> f64 {
        let oldest = newest + 1 - length;
        let within = seen.iter().filter(|(at, _)| (oldest..=newest).contains(at));
        within
            .map(|(at, sample)| synthesis[at - oldest] * sample)
            .sum()
    };
    (length - 1..thinned).map(convolved_again).sum()
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (banks, length, samples) = size.pick((8, 16_384, 34_816), (2, 32, 80));
    let sum = start(0, move || Sum {
        banks: vec![(0, 0.0); banks],
        expected: (samples - 2 * (length - 1)) as u64,
        done: None,
    })
    .await?;
    let mut first = Vec::new();
    for bank in 0..banks {
        let mut next = Next::Sum(sum, bank);
        for filter in filters(bank, length).into_iter().rev() {
            // A bank stays on one shard: its stages send to each other all the time.
            next = Next::Stage(start(bank, move || Stage { filter, next }).await?);
        }
        first.push(next);
    }
    for number in 0..samples {
        for next in &first {
            next.sample(signal(number)).await;
        }
    }
    let expected: Vec<_> = (0..banks)
        .map(|bank| expected(bank, length, samples))
        .collect();
    check("the sum of each bank", sum.sums().await?, expected)?;
    // Into a bank and from delay to convolution all of them, then what the convolutions let through.
    let (all, some) = (samples, samples - length + 1);
    let few = some - length + 1;
    Ok((banks * (2 * all + 3 * some + few)) as u64)
}
