#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(mailbx = 1)]
impl Counter {
    pub fn add(&mut self, by: u64) -> u64 {
        by
    }

    pub fn greet(&self, name: &str) -> String {
        name.to_owned()
    }

    pub fn clone(&self) {}

    #[message(locl)]
    pub fn near(&self) {}

    pub fn end(self) -> Result<u8, String> {
        Ok(1)
    }

    #[on(start)]
    fn start(&mut self) {}
}

/// The calls are typed although the messages are wrong: no text is about them.
async fn calls(counter: Addr<Counter>) {
    let _: u64 = counter.add(1).await.unwrap();
    let _: String = counter.greet("you").await.unwrap();
    let _: u8 = counter.end().await.unwrap();
    drop(counter.near());
}

fn main() {}
