//! Concurrent messages that would change the actor, or never wait.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message(concurrent)]
    pub async fn changes(&mut self) {}

    #[message(concurrent)]
    pub async fn typed(self: &mut Self) {}

    #[message(concurrent)]
    pub fn never_waits(&self) {}

    #[message(concurrent)]
    pub async fn looks(&self) {}
}

fn main() {}
