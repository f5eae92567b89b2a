#![allow(unused)]

use greenroom::prelude::*;

#[actor]
pub trait Counter {
    fn add(&mut self);
}

fn main() {}
