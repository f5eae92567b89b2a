#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[message(local)]
    pub fn tag(&mut self, tag: std::rc::Rc<str>) {}
}

fn call(counter: Addr<Counter>) {
    drop(counter.tag("x".into()));
}

fn main() {}
