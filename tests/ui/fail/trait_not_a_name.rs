//! A trait without a name, or without one of its own.

use greenroom::prelude::*;

struct Counter;

#[actor(trait = "CounterApi")]
impl Counter {
    pub fn add(&mut self) {}
}

struct Store<T>(T);

#[actor(trait = StoreApi<T>)]
impl<T: Send + 'static> Store<T> {
    pub fn put(&mut self, value: T) {
        self.0 = value;
    }
}

struct Cache;

#[actor(trait = api::CacheApi)]
impl Cache {
    pub fn get(&self) {}
}

struct Index;

#[actor(trait = Index)]
impl Index {
    pub fn get(&self) {}
}

fn main() {}
