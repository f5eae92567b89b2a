//! The attributes of functions on other items.

#![allow(unused)]

#[greenroom::main]
struct Counter;

#[greenroom::test]
mod tests {}

fn main() {}
