#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn clone(&self) -> u8 {
        1
    }

    #[message]
    fn drop(&mut self) {}
}

fn main() {}
