#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(mailbox = unbouned)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
