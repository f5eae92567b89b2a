//! A limit of another type than `usize`.

#![allow(unused)]

use greenroom::prelude::*;

const LIMIT: u8 = 64;

struct Store;

#[actor(max_message = LIMIT)]
impl Store {
    pub fn put(&self, id: u64) {
        let _ = id;
    }
}

fn main() {}
