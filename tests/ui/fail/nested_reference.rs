#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn find(&self, name: Option<&str>, path: (u8, &std::path::Path)) {}
}

fn main() {}
