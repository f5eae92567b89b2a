#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
unsafe impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
