#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    pub fn get(&self) -> u8 {
        "x"
    }

    pub async fn wait(&self) -> Result<u8, String> {
        Ok(String::new())
    }
}

fn main() {}
