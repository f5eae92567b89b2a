#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn all(&self) -> impl Iterator<Item = u8> {
        std::iter::empty()
    }
}

fn main() {}
