//! Pi precision: twenty workers compute the terms of a series for pi, to five thousand digits.

use futures_util::future::try_join_all;
use greenroom::Error;
use greenroom::prelude::*;

use crate::harness::{Size, check, start, start_many};

/// A number from 0 up to 2^64: digits of 64 bits, the first before the point.
#[derive(Clone, Debug, PartialEq)]
struct Fixed {
    digits: Vec<u64>,
}

impl Fixed {
    fn new(integer: u64, length: usize) -> Self {
        let mut digits = vec![0; length];
        digits[0] = integer;
        Self { digits }
    }

    fn is_zero(&self) -> bool {
        self.digits.iter().all(|&digit| digit == 0)
    }

    fn divide(&mut self, divisor: u64) {
        let mut rest = 0;
        for digit in &mut self.digits {
            let dividend = u128::from(rest) << 64 | u128::from(*digit);
            *digit = low(dividend / u128::from(divisor));
            rest = low(dividend % u128::from(divisor));
        }
    }

    fn add(&mut self, other: &Self) {
        let mut carry = false;
        for (digit, other) in self.digits.iter_mut().zip(&other.digits).rev() {
            (*digit, carry) = digit.carrying_add(*other, carry);
        }
    }

    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (digit, other) in self.digits.iter_mut().zip(&other.digits).rev() {
            (*digit, borrow) = digit.borrowing_sub(*other, borrow);
        }
    }

    fn shift_right(&mut self, bits: usize) {
        let moved = (bits / 64).min(self.digits.len());
        self.digits.rotate_right(moved);
        self.digits[..moved].fill(0);
        self.divide(1 << (bits % 64));
    }
}

fn low(digits: u128) -> u64 {
    u64::try_from(digits & u128::from(u64::MAX)).expect("masked")
}

/// A term of the formula of Bailey, Borwein and Plouffe.
fn term(number: u64, length: usize) -> Fixed {
    let part = |numerator, offset| {
        let mut part = Fixed::new(numerator, length);
        part.divide(8 * number + offset);
        part
    };
    let mut term = part(4, 1);
    for negative in [part(2, 4), part(1, 5), part(1, 6)] {
        term.subtract(&negative);
    }
    term.shift_right(4 * usize::try_from(number).expect("there are few terms"));
    term
}

/// `factor` times the angle whose tangent is one over `cotangent`, by its own series.
fn angle(factor: u64, cotangent: u64, length: usize) -> Fixed {
    let mut power = Fixed::new(factor, length);
    power.divide(cotangent);
    let mut sum = power.clone();
    for number in 1.. {
        power.divide(cotangent * cotangent);
        if power.is_zero() {
            break;
        }
        let mut term = power.clone();
        term.divide(2 * number + 1);
        if number % 2 == 0 {
            sum.add(&term);
        } else {
            sum.subtract(&term);
        }
    }
    sum
}

/// Adds up the terms, and knows which is to be computed next.
struct Sum {
    sum: Fixed,
    next: u64,
    is_done: bool,
}

#[actor]
impl Sum {
    /// Takes a term, if the worker has one, and answers with the number of its next; with none when terms are too small
    /// to matter.
    pub fn add(&mut self, term: Option<Fixed>) -> Option<u64> {
        if let Some(term) = term {
            self.is_done |= term.is_zero();
            self.sum.add(&term);
        }
        let number = self.next;
        self.next += 1;
        (!self.is_done).then_some(number)
    }

    pub fn sum(&self) -> Fixed {
        self.sum.clone()
    }
}

struct Worker {
    length: usize,
}

#[actor]
impl Worker {
    /// Returns how many terms it computed.
    pub async fn work(&mut self, sum: Addr<Sum>) -> Result<u64, Error> {
        let (mut computed, mut last) = (0, None);
        while let Some(number) = sum.add(last).await? {
            last = Some(term(number, self.length));
            computed += 1;
        }
        Ok(computed)
    }
}

pub async fn run(size: Size) -> Result<u64, Error> {
    let (count, decimals) = size.pick((20, 5_000), (4, 100));
    // 64 bits are more than 19 decimal digits. One digit is before the point, and one for what rounding takes.
    let length = decimals / 19 + 2;
    let sum = start(0, move || Sum {
        sum: Fixed::new(0, length),
        next: 0,
        is_done: false,
    })
    .await?;
    let workers = start_many(count, move |_| Worker { length }).await?;
    let work = workers.iter().map(|worker| worker.work(sum).into_future());
    let computed: u64 = try_join_all(work).await?.iter().sum();
    // By another formula, Machin's.
    let mut expected = angle(16, 5, length);
    expected.subtract(&angle(4, 239, length));
    let mut found = sum.sum().await?;
    expected.digits.pop();
    found.digits.pop();
    check("pi", found, expected)?;
    Ok(2 * computed)
}
