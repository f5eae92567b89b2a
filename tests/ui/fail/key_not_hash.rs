//! A key without a hash, and one of a parameter that need not have any.

#![allow(unused)]

use greenroom::prelude::*;

pub struct Token(u8);

struct Cache;

#[actor]
impl Cache {
    pub fn get(&self, #[key] token: Token) -> u8 {
        token.0
    }

    pub fn nearest(&self, #[key] place: Option<f64>) {}
}

struct Store<K>(K);

#[actor]
impl<K: Send> Store<K> {
    pub fn put(&mut self, #[key] key: K) {
        self.0 = key;
    }
}

fn main() {}
