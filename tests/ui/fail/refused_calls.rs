//! One mistake in a message is one text, whatever is done with its calls.
#![allow(unused)]

use std::time::Duration;

use greenroom::prelude::*;

struct Words(Vec<String>);

#[actor]
impl Words {
    pub fn first(&self) -> Option<&str> {
        None
    }

    pub fn all(&self) -> impl Iterator<Item = u8> {
        std::iter::empty()
    }

    pub fn any<T: Send>(&self, value: T) -> u8 {
        1
    }

    pub fn both(&self, reply: Reply<u8>) -> u8 {
        1
    }

    pub fn find(&self, word: &str) -> usize {
        1
    }

    #[cfg(any())]
    pub fn gone(&self) -> &str {
        "x"
    }
}

async fn calls(words: Addr<Words>) -> Result<(), greenroom::Error> {
    if let Some(first) = words.first().await? {
        println!("{first} {}", first.len());
    }
    for byte in words.all().timeout(Duration::from_secs(1)).await? {
        drop(byte);
    }
    let sum: u8 = words.any(3).await? + words.any("three").await? + words.both().await?;
    words.first().tell().await?;
    let place: usize = words.find("x").await?;
    Ok(())
}

fn main() {}
