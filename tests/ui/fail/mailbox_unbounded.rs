#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(mailbox = unbounded)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
