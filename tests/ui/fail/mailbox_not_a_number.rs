#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(mailbox = "10")]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
