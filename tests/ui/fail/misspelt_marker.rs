//! A marker that is none: the compiler knows a similar one.
#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[mesage]
    fn add(&mut self) {}
}

fn main() {}
