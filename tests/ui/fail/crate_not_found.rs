#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(crate = crate::nowhere)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
