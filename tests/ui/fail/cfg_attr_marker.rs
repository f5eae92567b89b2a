#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[cfg_attr(unix, message)]
    fn message(&self) {}

    #[cfg_attr(unix, inline, cfg_attr(windows, greenroom::skip))]
    pub fn skipped(&self) {}
}

fn main() {}
