#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    fn helper(&self) {}
}

fn call(counter: Addr<Counter>) {
    drop(counter.helper());
}

fn main() {}
