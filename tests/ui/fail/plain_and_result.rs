#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[message(plain, result)]
    pub fn both(&self) -> Result<u8, u8> {
        Ok(1)
    }
}

fn main() {}
