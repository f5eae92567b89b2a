#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[on(started)]
    fn first(&mut self) {}

    #[on(started)]
    async fn second(&mut self) {}
}

fn main() {}
