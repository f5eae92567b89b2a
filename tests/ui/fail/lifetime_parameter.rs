#![allow(unused)]

use greenroom::prelude::*;

struct Counter<'a>(&'a u8);

#[actor]
impl<'a> Counter<'a> {
    pub fn valid(&self) {}
}

fn main() {}
