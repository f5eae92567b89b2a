//! A trait without a name.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(trait = "CounterApi")]
impl Counter {
    pub fn get(&self) -> u64 {
        0
    }
}

fn main() {}
