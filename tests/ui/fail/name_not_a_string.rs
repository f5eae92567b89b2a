#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(name = counter)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
