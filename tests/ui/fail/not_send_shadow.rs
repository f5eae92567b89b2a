//! A type that has taken the name of one that may always cross shards.
#![allow(unused)]

use std::rc::Rc;

use greenroom::prelude::*;

pub struct String(Rc<u8>);

pub struct Counter;

#[actor]
impl Counter {
    pub fn set(&mut self, value: String) {}
}

fn main() {}
