#![allow(unused)]

use greenroom::prelude::*;

const ROOM: u8 = 3;

struct Counter;

#[actor(mailbox = ROOM)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
