//! A message without arguments, in a box.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message(boxed)]
    pub fn get(&self, _ctx: &mut Ctx<Self>) -> u64 {
        0
    }
}

fn main() {}
