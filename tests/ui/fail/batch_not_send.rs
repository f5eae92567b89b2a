//! What is in a batch crosses shards message by message.

use std::rc::Rc;

use greenroom::Batch;
use greenroom::prelude::*;

struct Journal;

#[actor]
impl Journal {
    #[message(batch)]
    pub fn append(&mut self, lines: Batch<(u8, Rc<str>)>) {
        let _ = lines;
    }
}

fn main() {}
