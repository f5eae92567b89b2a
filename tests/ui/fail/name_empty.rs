#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(name = "")]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
