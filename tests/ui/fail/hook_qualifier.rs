#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[on(started)]
    unsafe fn start(&mut self) {}
}

fn main() {}
