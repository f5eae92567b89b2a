#![allow(unused)]

use greenroom::prelude::*;

#[actor]
pub struct Counter {
    total: u64,
}

fn main() {}
