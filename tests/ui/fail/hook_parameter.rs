#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[on(started)]
    fn start(&mut self, ctx: &mut Ctx<Self>, number: u8) {}
}

fn main() {}
