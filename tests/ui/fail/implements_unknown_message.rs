//! A trait implemented with a message that is not there.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

trait Speaker {
    fn speak(&self) -> greenroom::DynCall<u64>;
}

#[actor(implements = Speaker(speek))]
impl Counter {
    pub fn speak(&self) -> u64 {
        0
    }
}

fn main() {}
