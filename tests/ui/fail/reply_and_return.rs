#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn both(&self, reply: Reply<u8>) -> u8 {
        1
    }
}

fn main() {}
