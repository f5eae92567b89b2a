//! Numbers whose value nobody sees before the compiler does.
#![allow(unused)]

use greenroom::prelude::*;

const NONE: usize = 0;

struct Counter;

#[actor(mailbox = NONE)]
impl Counter {
    pub fn add(&mut self) {}
}

struct Readers;

#[actor(mailbox = Self::ROOM, concurrent = Self::ROOM - 2)]
impl Readers {
    const ROOM: usize = 2;

    #[message(concurrent)]
    pub async fn read(&self) {}
}

fn main() {}
