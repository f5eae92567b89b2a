//! A conversion of what is no argument.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn get(#[into] &self) {}

    pub fn context(&self, #[into] ctx: &mut Ctx<Self>) {
        let _ = ctx;
    }

    pub fn reply(&self, #[into] reply: Reply<u8>) {
        reply.send(1);
    }

    pub fn name(&self, #[into(String)] name: String) {
        let _ = name;
    }

    fn helper(&self, #[into] name: String) {
        let _ = name;
    }
}

fn main() {}
