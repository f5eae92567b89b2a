#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[skip]
    const LIMIT: u8 = 1;
}

fn main() {}
