#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn set(&mut self, value: Vec<std::rc::Rc<u8>>) {}
}

fn main() {}
