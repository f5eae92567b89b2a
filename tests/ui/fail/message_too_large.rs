//! A message whose arguments are larger than its actor allows.

#![allow(unused)]

use greenroom::prelude::*;

struct Store;

#[actor(max_message = 64)]
impl Store {
    pub fn small(&self, id: u64) {
        let _ = id;
    }

    pub fn big(&self, id: u64, page: [u8; 100]) {
        let _ = (id, page);
    }

    #[message(boxed)]
    pub fn boxed(&self, page: [u8; 100]) {
        let _ = page;
    }
}

fn main() {}
