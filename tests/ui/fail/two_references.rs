#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn copy(&mut self, from: &[u8], to: &mut Vec<u8>) {}
}

fn main() {}
