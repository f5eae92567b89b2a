#![allow(unused)]

use greenroom::prelude::*;

mod strange {
    pub type Result<T> = Option<T>;
}

type Result = u8;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn get(&self) -> Result {
        1
    }

    pub async fn find(&self) -> strange::Result<u8> {
        None
    }
}

fn main() {}
