#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn twice(&self) {}

    pub fn twice(&self) {}
}

fn main() {}
