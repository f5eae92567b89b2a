//! The way by the key of an actor without any.

#![allow(unused)]

use greenroom::prelude::*;

#[derive(Default)]
struct Cache;

#[actor]
impl Cache {
    pub fn get(&self, name: String) -> u32 {
        0
    }
}

async fn call(cache: Sharded<Cache>) -> Result<(), greenroom::Error> {
    cache.route().get("a".to_owned()).await?;
    Ok(())
}

fn main() {}
