#![allow(unused)]

use greenroom::prelude::*;

macro_rules! id {
    ($t:ty) => {
        $t
    };
}

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn parent(&mut self, parent: id!(Option<Self>)) {}
}

fn main() {}
