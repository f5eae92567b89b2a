#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn implicit(self) {}

    #[message]
    fn explicit(mut self) {}
}

fn main() {}
