//! What has no size cannot be passed: the compiler says so, once.
#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn name(&self, name: str) {}

    pub fn bytes(&self, bytes: [u8]) {}

    pub fn job(&self, job: dyn Fn() + Send) {}

    pub fn part(&self) -> [u8] {
        todo!()
    }

    pub fn add(&mut self, by: u64) -> u64 {
        by
    }
}

async fn calls(counter: Addr<Counter>) -> Option<u64> {
    counter.name("x").await.ok()?;
    counter.add(1).await.ok()
}

fn main() {}
