#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[skip(always)]
    pub fn skipped(&self) {}
}

fn main() {}
