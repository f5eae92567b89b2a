#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn add(&mut self, by: u64) {}
}

fn call(counter: Addr<Counter>) {
    drop(counter.add("x"));
    drop(counter.add());
}

fn main() {}
