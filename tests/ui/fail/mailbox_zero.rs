#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(mailbox = 0)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
