#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub const fn size(&self) -> u8 {
        1
    }
}

fn main() {}
