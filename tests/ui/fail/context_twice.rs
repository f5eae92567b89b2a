#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn ask(&self, ctx: &mut Ctx<Self>, again: &mut Ctx<Self>) {}
}

fn main() {}
