//! An expression for a period is a `Duration`.

use greenroom::prelude::*;

struct Clock;

#[actor]
impl Clock {
    const PERIOD: u64 = 5;

    #[every(Self::PERIOD)]
    fn tick(&self) {}
}

fn main() {}
