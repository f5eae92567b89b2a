#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

fn address(counter: Addr<Counter>) {}

fn main() {}
