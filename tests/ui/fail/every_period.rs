//! A period is a number with a unit, or a `Duration`, and long enough.

use greenroom::prelude::*;

struct Clock {
    period: std::time::Duration,
}

#[actor]
impl Clock {
    #[every(100)]
    fn without_unit(&self) {}

    #[every(5days)]
    fn of_another_unit(&self) {}

    #[every("5s")]
    fn as_text(&self) {}

    #[every(0s)]
    fn nothing(&self) {}

    #[every(999us)]
    fn too_short(&self) {}

    #[every(99999999999999999999h)]
    fn too_long(&self) {}

    #[every(self.period)]
    fn of_the_state(&self) {}

    #[every(-3s)]
    fn before_now(&self) {}

    #[every(2 * 3s)]
    fn computed(&self) {}
}

fn main() {}
