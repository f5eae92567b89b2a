//! Nobody is there to pass anything to a method that a timer calls.

use greenroom::prelude::*;

struct Clock;

#[actor]
impl Clock {
    #[every(5s)]
    fn add(&mut self, by: u64) {
        let _ = by;
    }

    #[every(5s)]
    fn ask(&mut self, reply: Reply<u64>) {
        drop(reply);
    }

    #[every(5s)]
    fn consume(self) {}

    #[every(5s)]
    #[message]
    fn twice(&self) {}
}

fn main() {}
