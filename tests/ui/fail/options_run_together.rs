//! More after a value than a value.

use greenroom::prelude::*;

struct Counter;

#[actor(mailbox = 16 17, name = "a" overflow = reject, max_message =, concurrent = , crate = ::greenroom x)]
impl Counter {
    pub fn add(&mut self) {}
}

fn main() {}
