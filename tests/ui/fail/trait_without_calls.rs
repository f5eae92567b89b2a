//! A trait that would have no methods.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(trait = CounterApi)]
impl Counter {
    #[message(local)]
    pub fn get(&self) -> u64 {
        0
    }
}

fn main() {}
