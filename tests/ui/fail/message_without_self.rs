#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[message]
    pub fn make() -> Self {
        Self
    }
}

fn main() {}
