//! Lifetimes that are not declared, or belong to the block.
#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn name(&self, name: &'a str) -> &'b str {
        "x"
    }
}

struct View<'a>(&'a str);

#[actor]
impl<'a> View<'a> {
    pub fn name(&self) -> &'a str {
        self.0
    }
}

#[actor]
impl View<'_> {
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

fn main() {}
