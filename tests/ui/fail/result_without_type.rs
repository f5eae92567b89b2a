#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[message(result)]
    pub fn nothing(&self) {}
}

fn main() {}
