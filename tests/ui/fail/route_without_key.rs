//! A message without a key, on a way that chooses the instance by the key.

#![allow(unused)]

use greenroom::prelude::*;

#[derive(Default)]
struct Cache;

#[actor]
impl Cache {
    pub fn get(&self, #[key] name: String) -> u32 {
        0
    }

    pub fn len(&self, by: u32) -> usize {
        0
    }

    #[message(local)]
    pub fn here(&self) {}
}

async fn call(cache: Sharded<Cache>) -> Result<(), greenroom::Error> {
    cache.route().get("a".to_owned()).await?;
    cache.route().len(1).await?;
    drop(cache.route().here());
    Ok(())
}

fn main() {}
