//! What stands beside `batch`.

use greenroom::Batch;
use greenroom::prelude::*;

struct Journal;

#[actor]
impl Journal {
    #[message(batch = 0)]
    pub fn zero(&mut self, lines: Batch<String>) {
        let _ = lines;
    }

    #[message(batch = "many")]
    pub fn many(&mut self, lines: Batch<String>) {
        let _ = lines;
    }

    #[message(batch, boxed)]
    pub fn boxed(&mut self, lines: Batch<String>) {
        let _ = lines;
    }

    #[message(batch, concurrent)]
    pub async fn beside(&self, lines: Batch<String>) {
        let _ = lines;
    }

    #[message(local = 3)]
    pub fn local(&mut self) {}
}

fn main() {}
