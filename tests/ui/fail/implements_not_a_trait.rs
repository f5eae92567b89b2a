//! No trait to implement.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(implements = "Speaker")]
impl Counter {
    pub fn get(&self) -> u64 {
        0
    }
}

fn main() {}
