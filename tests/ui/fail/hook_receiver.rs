#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[on(started)]
    fn start() {}

    #[on(stopping)]
    fn stop(self) {}
}

fn main() {}
