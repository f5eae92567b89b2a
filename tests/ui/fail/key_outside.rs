//! A key outside of an actor.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

impl Counter {
    pub fn get(&self, #[key] name: String) {}
}

fn main() {}
