//! A call with what cannot be converted.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn rename(&mut self, #[into] name: String) {
        let _ = name;
    }
}

fn call(counter: Addr<Counter>) {
    drop(counter.rename("fine"));
    drop(counter.rename(5));
}

fn main() {}
