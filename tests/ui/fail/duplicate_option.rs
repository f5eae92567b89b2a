#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(mailbox = 10, name = "a", mailbox = 20)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
