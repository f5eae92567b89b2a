#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn both(&self, first: Reply<u8>, second: Reply<u16>) {}
}

fn main() {}
