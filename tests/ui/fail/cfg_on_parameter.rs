#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn set(&mut self, #[cfg(unix)] value: u8, #[cfg_attr(unix, cfg(unix))] other: u8) {}
}

fn main() {}
