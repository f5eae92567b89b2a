#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[on(started)]
    fn start<T>(&mut self) {}
}

fn main() {}
