#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[on]
    fn bare(&mut self) {}

    #[on(started, stopping)]
    fn both(&mut self) {}
}

fn main() {}
