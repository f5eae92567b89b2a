#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[on(stopping)]
    fn stop(&mut self) -> Result<(), String> {
        Ok(())
    }
}

fn main() {}
