//! What the compiler cannot read is not said again.
#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn add(&mut self, by) {}

    pub fn get(&self) -> u8 {
        1
    }
}

async fn get(counter: Addr<Counter>) -> Option<u8> {
    counter.get().await.ok()
}

fn main() {}
