#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

impl Counter {
    #[message]
    pub fn add(&mut self) {}

    #[skip]
    pub fn skipped(&self) {}

    #[on(started)]
    fn start(&mut self) {}
}

fn main() {}
