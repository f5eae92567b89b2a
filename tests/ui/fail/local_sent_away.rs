//! A handle for the actor's own shard, taken to another one.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn count(&self) -> u32 {
        1
    }
}

fn call(system: &System, counter: Local<Counter>) {
    let counted = system.run_on(1, move || async move { counter.count().await });
}

fn main() {}
