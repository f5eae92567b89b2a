#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Default for Counter {
    fn default() -> Self {
        Self
    }
}

fn main() {}
