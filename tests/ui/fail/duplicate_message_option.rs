#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[message(local, local)]
    pub fn twice(&self) {}
}

fn main() {}
