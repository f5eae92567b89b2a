//! A key that is no argument, or of a message that cannot have one.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn get(#[key] &self) {}

    pub fn context(&self, #[key] ctx: &mut Ctx<Self>) {
        let _ = ctx;
    }

    pub fn reply(&self, #[key] reply: Reply<u8>) {
        reply.send(1);
    }

    #[message(batch)]
    pub fn batch(&self, #[key] all: greenroom::Batch<u8>) {
        drop(all);
    }

    #[message(local)]
    pub fn local(&self, #[key] name: String) {
        let _ = name;
    }

    pub fn name(&self, #[key(1)] name: String) {
        let _ = name;
    }

    fn helper(&self, #[key] name: String) {
        let _ = name;
    }
}

fn main() {}
