#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn bytes(&self) -> &[u8] {
        &[]
    }

    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        "".into()
    }
}

fn main() {}
