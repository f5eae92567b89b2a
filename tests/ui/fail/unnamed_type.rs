#![allow(unused)]

use greenroom::prelude::*;

#[actor]
impl (u8, u8) {
    #[message]
    pub fn valid(&self) {}
}

fn main() {}
