#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn name<'a>(&mut self, name: std::borrow::Cow<'a, str>) {}
}

fn main() {}
