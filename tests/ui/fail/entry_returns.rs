//! A test that returns what is no outcome.

#![allow(unused)]

#[greenroom::main]
async fn main() -> u8 {
    1
}
