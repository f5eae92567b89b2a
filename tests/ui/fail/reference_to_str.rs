#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn greet(&self, name: &str) {}
}

fn main() {}
