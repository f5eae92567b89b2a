//! Options that are wrong, one by one.

#![allow(unused)]

#[greenroom::test(shard = 2)]
async fn unknown() {}

#[greenroom::test(shards = 0)]
async fn none() {}

#[greenroom::test(shards = "two")]
async fn text() {}

#[greenroom::test(backend = epol)]
async fn misspelt() {}

#[greenroom::test(backend = 1)]
async fn number() {}

#[greenroom::test(grace = 5)]
async fn seconds() {}

#[greenroom::test(shards = 1, shards = 2)]
async fn twice() {}

fn main() {}
