#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn implicit(self: std::rc::Rc<Self>) {}

    pub fn pinned(self: std::pin::Pin<&mut Self>) {}

    pub fn forever(&'static self) {}
}

fn main() {}
