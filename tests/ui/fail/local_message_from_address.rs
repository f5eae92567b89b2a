#![allow(unused)]

use greenroom::prelude::*;

struct Counter;

#[actor]
impl Counter {
    pub fn valid(&self) {}

    #[message(local)]
    pub fn tag(&mut self, tag: std::rc::Rc<str>) {}
}

async fn call(counter: Addr<Counter>) -> Result<(), greenroom::Error> {
    counter.tag("x".into()).await?;
    counter.tag("x".into()).tell().await?;
    Ok(())
}

fn main() {}
