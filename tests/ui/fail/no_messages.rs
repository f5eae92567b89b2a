#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    fn add(&mut self) {}

    pub fn new() -> Self {
        Self
    }

    #[skip]
    pub fn skipped(&self) {}
}

fn main() {}
