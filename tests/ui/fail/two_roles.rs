#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[message]
    #[on(started)]
    pub fn both(&mut self) {}

    #[skip]
    #[message(local)]
    pub fn neither(&mut self) {}
}

fn main() {}
