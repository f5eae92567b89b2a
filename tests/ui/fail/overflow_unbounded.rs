#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(overflow = reject, mailbox = unbounded)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
