//! An address where its client is meant.

#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor(trait = CounterApi)]
impl Counter {
    pub fn get(&self) -> u64 {
        0
    }
}

async fn use_it(api: &dyn CounterApi) {
    let _ = api.get().await;
}

async fn call(counter: Addr<Counter>) {
    use_it(&*counter).await;
    use_it(&counter).await;
}

fn main() {}
