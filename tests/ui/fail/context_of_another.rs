#![allow(unused)]

use greenroom::prelude::*;

struct Other;

#[actor]
impl Other {
    pub fn valid(&self) {}
}

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn ask(&self, ctx: &mut Ctx<Other>) {}

    #[on(stopping)]
    async fn stop(&mut self, ctx: &mut Ctx<Other>) {}
}

fn main() {}
