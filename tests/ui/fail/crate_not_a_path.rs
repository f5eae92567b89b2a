#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(crate = "greenroom")]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
