//! Functions that nobody can call, or that somebody else would.

#![allow(unused)]

use greenroom::Handle;

#[greenroom::test]
async fn number(shards: usize) {}

#[greenroom::test]
async fn two(system: Handle, other: Handle) {}

#[greenroom::test]
async fn generic<T>() {}

#[greenroom::test]
async unsafe fn risky() {}

#[greenroom::test]
#[test]
async fn twice() {}

#[greenroom::main]
async fn start() {}

fn main() {}
