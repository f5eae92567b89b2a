#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[message(locl)]
    pub fn near(&self) {}

    #[message(sometimes, local)]
    pub fn far(&self) {}
}

fn main() {}
