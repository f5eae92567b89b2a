#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(mailbox, name: "a", "crate")]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
