//! Types that borrow without saying so.
#![allow(unused)]

use std::borrow::Cow;
use std::sync::MutexGuard;

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn name(&mut self, name: Cow<str>) {}

    pub fn names(&mut self, names: Vec<Cow<str>>) {}

    pub fn lock(&self) -> MutexGuard<u8> {
        todo!()
    }

    pub fn fine(&mut self, name: Cow<'static, str>, with: fn(Cow<str>)) {}
}

fn main() {}
