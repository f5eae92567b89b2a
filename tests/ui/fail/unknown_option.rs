#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(mailbx = 10, priority = 3)]
impl Counter {
    pub fn valid(&self) {}
}

fn main() {}
