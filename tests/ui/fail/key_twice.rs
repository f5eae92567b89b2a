//! Two keys, of which only one could be right.

#![allow(unused)]

use greenroom::prelude::*;

struct Cache;

#[actor]
impl Cache {
    pub fn get(&self, #[key] room: u32, #[key] name: String) -> u32 {
        room
    }

    pub fn both(&self, #[key] #[key] name: String) {}
}

fn main() {}
