#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(overflow = drop_oldset)]
impl Counter {
    pub fn valid(&self) {}
}

struct Other;

#[actor(overflow = panic)]
impl Other {
    pub fn valid(&self) {}
}

fn main() {}
