//! Where instances are is said where they are started.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(per_shard, key = String, mailbox = 16)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
