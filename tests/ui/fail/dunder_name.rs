#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn __hidden(&self) {}
}

fn main() {}
