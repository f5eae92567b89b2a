//! A counter with actix: the book shows it, line by line.

use actix::prelude::*;

#[derive(Default)]
struct Counter {
    n: u64,
}

impl Actor for Counter {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Add(u64);

#[derive(Message)]
#[rtype(result = "u64")]
struct Get;

impl Handler<Add> for Counter {
    type Result = ();

    fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) {
        self.n += by;
    }
}

impl Handler<Get> for Counter {
    type Result = u64;

    fn handle(&mut self, Get: Get, _: &mut Context<Self>) -> u64 {
        self.n
    }
}

#[actix::main]
async fn main() -> Result<(), MailboxError> {
    let counter = Counter::default().start();
    counter.do_send(Add(5));
    assert_eq!(counter.send(Get).await?, 5);
    Ok(())
}
