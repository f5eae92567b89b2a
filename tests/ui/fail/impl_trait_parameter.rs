#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn name(&mut self, name: impl Into<String>) {}
}

fn main() {}
