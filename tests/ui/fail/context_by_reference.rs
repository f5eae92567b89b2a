#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn ask(&self, ctx: &Ctx<Self>) {}
}

fn main() {}
