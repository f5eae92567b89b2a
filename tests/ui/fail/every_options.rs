//! What is done about missed ticks is one of three things, and the only option.

use greenroom::prelude::*;

struct Clock;

#[actor]
impl Clock {
    #[every(5s, missed = brust)]
    fn one(&self) {}

    #[every(5s, mised = skip)]
    fn two(&self) {}

    #[every(5s, missed = skip, missed = delay)]
    fn three(&self) {}

    #[every(5s, missed)]
    fn four(&self) {}
}

fn main() {}
