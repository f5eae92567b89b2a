//! A limit on the size of messages that is no number, and one that allows none.

#![allow(unused)]

use greenroom::prelude::*;

struct Store;

#[actor(max_message = "64")]
impl Store {
    pub fn put(&self, id: u64) {
        let _ = id;
    }
}

struct Other;

#[actor(max_message = 0)]
impl Other {
    pub fn put(&self, id: u64) {
        let _ = id;
    }
}

fn main() {}
