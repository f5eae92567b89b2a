#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[on(started)]
    fn start(&mut self) -> u8 {
        1
    }
}

fn main() {}
