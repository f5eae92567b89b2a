#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[message = "local"]
    pub fn value(&self) {}

    #[message(local = true)]
    pub fn assigned(&self) {}
}

fn main() {}
