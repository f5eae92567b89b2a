#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn set<T: Send>(&mut self, value: T) {}

    pub fn array<'a, const N: usize>(&'a mut self, value: [u8; N]) {}
}

fn main() {}
