//! A batching handler takes one batch, and nothing else that callers pass.

use greenroom::Batch;
use greenroom::prelude::*;

struct Journal;

#[actor]
impl Journal {
    #[message(batch)]
    pub fn none(&mut self) {}

    #[message(batch)]
    pub fn single(&mut self, line: String) {
        drop(line);
    }

    #[message(batch)]
    pub fn borrows(&mut self, lines: &Batch<String>) {
        let _ = lines;
    }

    #[message(batch)]
    pub fn more(&mut self, lines: Batch<String>, urgent: u8) {
        let _ = (lines, urgent);
    }

    #[message(batch)]
    pub fn two(&mut self, lines: Batch<String>, others: Batch<String>) {
        let _ = (lines, others);
    }

    #[message(batch)]
    pub fn reply(&mut self, lines: Batch<String>, reply: Reply<u8>) {
        let _ = (lines, reply);
    }

    #[message(batch)]
    pub fn both(&mut self, lines: Batch<(String, Reply<u8>)>) -> u8 {
        let _ = lines;
        1
    }

    #[message(batch)]
    pub fn converted(&mut self, #[into] lines: Batch<String>) {
        let _ = lines;
    }

    #[message(batch)]
    pub fn borrowed(&mut self, lines: Batch<(&str, u8)>) {
        let _ = lines;
    }
}

fn main() {}
