//! Radix sort: a hundred thousand numbers go through sixty actors, one for each bit, and come out in order.
//!
//! Every stage waits for room in the mailbox of the next, so the numbers on the way are bounded by the mailboxes, however
//! many there are.

use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start};
use crate::random::Random;

/// Passes the numbers on whose bit is not set, and then those whose bit is.
struct Stage {
    bit: u64,
    expected: usize,
    seen: usize,
    kept: Vec<u64>,
    next: Next,
}

#[derive(Clone, Copy)]
enum Next {
    Stage(Addr<Stage>),
    Last(Addr<Last>),
}

impl Next {
    async fn number(self, number: u64) {
        let told = match self {
            Self::Stage(stage) => stage.number(number).tell().await.is_ok(),
            Self::Last(last) => last.number(number).tell().await.is_ok(),
        };
        assert!(told, "a stage outlives the stages before it");
    }
}

#[actor]
impl Stage {
    pub async fn number(&mut self, number: u64) {
        self.seen += 1;
        if number & self.bit == 0 {
            self.next.number(number).await;
        } else {
            self.kept.push(number);
        }
        if self.seen == self.expected {
            for number in std::mem::take(&mut self.kept) {
                self.next.number(number).await;
            }
        }
    }
}

/// Looks at what comes out.
struct Last {
    expected: usize,
    seen: usize,
    sum: u64,
    highest: u64,
    is_sorted: bool,
    done: Option<Reply<Sorted>>,
}

/// What has come out.
#[derive(Debug, PartialEq)]
struct Sorted {
    is_sorted: bool,
    sum: u64,
}

#[actor]
impl Last {
    pub fn number(&mut self, number: u64) {
        self.is_sorted &= number >= self.highest;
        self.highest = number;
        self.sum = self.sum.wrapping_add(number);
        self.seen += 1;
        self.answer();
    }

    /// Answers when all have come.
    pub fn sorted(&mut self, done: Reply<Sorted>) {
        self.done = Some(done);
        self.answer();
    }

    fn answer(&mut self) {
        if self.seen == self.expected
            && let Some(done) = self.done.take()
        {
            done.send(Sorted {
                is_sorted: self.is_sorted,
                sum: self.sum,
            });
        }
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (count, bits) = size.pick((100_000, 60), (200, 16));
    let last = start(bits, move || Last {
        expected: count,
        seen: 0,
        sum: 0,
        highest: 0,
        is_sorted: true,
        done: None,
    })
    .await?;
    let mut next = Next::Last(last);
    for bit in (0..bits).rev() {
        let stage = start(bit, move || Stage {
            bit: 1 << bit,
            expected: count,
            seen: 0,
            kept: Vec::new(),
            next,
        });
        next = Next::Stage(stage.await?);
    }
    let mut random = Random::new(2048);
    let mut sum = 0_u64;
    for _ in 0..count {
        let number = random.next() >> (64 - bits);
        sum = sum.wrapping_add(number);
        next.number(number).await;
    }
    let sorted = last.sorted().await?;
    let is_sorted = true;
    check("what came out", sorted, Sorted { is_sorted, sum })?;
    Ok((count * (bits + 1)) as u64)
}
