#![deny(unused_must_use)]
#![allow(dead_code)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn add(&mut self) {}
}

fn call(counter: Addr<Counter>) {
    counter.add();
}

fn main() {}
