//! `#[every]` says how often.

use greenroom::prelude::*;

struct Clock;

#[actor]
impl Clock {
    #[every]
    fn one(&self) {}

    #[every()]
    fn two(&self) {}

    #[every(missed = skip, 5s)]
    fn in_another_order(&self) {}

    #[every(missed = burst)]
    fn three(&self) {}
}

fn main() {}
