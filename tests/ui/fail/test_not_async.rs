//! A test that is no `async fn`.

#![allow(unused)]

#[greenroom::test(shards = 2)]
fn nothing_to_wait_for() {}

fn main() {}
