//! A counter with kameo: the book shows it, line by line.

use kameo::prelude::*;

#[derive(Actor, Default)]
struct Counter {
    n: u64,
}

struct Add(u64);

impl Message<Add> for Counter {
    type Reply = ();

    async fn handle(&mut self, Add(by): Add, _: &mut Context<Self, ()>) {
        self.n += by;
    }
}

struct Get;

impl Message<Get> for Counter {
    type Reply = u64;

    async fn handle(&mut self, Get: Get, _: &mut Context<Self, u64>) -> u64 {
        self.n
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counter = Counter::spawn(Counter::default());
    counter.tell(Add(5)).await?;
    assert_eq!(counter.ask(Get).await?, 5);
    Ok(())
}
