#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn map(&mut self, at: *mut u8) {}
}

fn main() {}
