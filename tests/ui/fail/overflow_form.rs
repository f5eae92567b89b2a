#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(overflow = "reject")]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
