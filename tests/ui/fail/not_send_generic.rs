#![allow(unused)]

use greenroom::prelude::*;

struct Counter<T>(T);

#[actor]
impl<T: 'static> Counter<T> {
    pub fn valid(&self) {}

    pub fn set(&mut self, value: T) {}
}

fn main() {}
