#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}


}

#[actor]
impl Counter {
    pub fn other(&self) {}
}

fn main() {}
