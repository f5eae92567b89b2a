//! A `main` on a shard, among decoys.

#![forbid(unsafe_code)]
#![deny(warnings)]

#![no_implicit_prelude]

#[allow(dead_code)]
mod decoys {
    pub struct ExitCode;
    pub struct System;
    pub struct Duration;
    pub mod core {}
    pub mod std {}
}

#[allow(unused_imports)]
use decoys::*;

struct Counter(u64);

#[::greenroom::actor]
impl Counter {
    pub fn add(&mut self, by: u64) -> u64 {
        self.0 += by;
        self.0
    }
}

/// Its error is not `Send`.
#[::greenroom::main(shards = 1 + 1, backend = auto, grace = ::core::time::Duration::from_secs(1))]
async fn main() -> ::core::result::Result<(), ::std::boxed::Box<dyn ::std::error::Error>> {
    let here = ::greenroom::spawn(Counter(1));
    ::std::assert_eq!(here.add(2).await?, 3);
    let system = ::core::option::Option::expect(::greenroom::Handle::current(), "on a shard");
    ::std::assert_eq!(system.shard_count(), 2);
    ::core::result::Result::Ok(())
}
