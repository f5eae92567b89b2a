//! The value of a batching handler goes to every asker.

use std::io;

use greenroom::Batch;
use greenroom::prelude::*;

struct Journal;

#[actor]
impl Journal {
    #[message(batch)]
    pub fn append(&mut self, lines: Batch<String>) -> io::Result<()> {
        let _ = lines;
        Ok(())
    }
}

fn main() {}
