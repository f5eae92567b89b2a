//! A handler that answers through its `Reply`, now or later.

#![forbid(unsafe_code)]
#![deny(warnings)]

use std::rc::Rc;

use greenroom::prelude::*;

#[derive(Default)]
struct Desk {
    waiting: Vec<Reply<u8>>,
}

#[actor]
impl Desk {
    pub fn wait(&mut self, reply: Reply<u8>) {
        self.waiting.push(reply);
    }

    pub fn first(&mut self, reply: greenroom::Reply<u8>, value: u8) -> () {
        reply.send(value);
    }

    pub async fn fallible(&mut self, value: u8, reply: Reply<Result<u8, String>>) {
        reply.send(Ok(value));
    }

    #[message(plain)]
    pub fn unflattened(&mut self, reply: Reply<Result<u8, String>>) {
        reply.send(Ok(1));
    }

    #[message(local)]
    pub fn local(&mut self, value: Rc<u8>, reply: Reply<Rc<u8>>, ctx: &mut Ctx<Self>) {
        let _ = ctx;
        reply.send(value);
    }

    pub fn serve(&mut self) {
        for reply in self.waiting.drain(..) {
            reply.send(7);
        }
    }
}

async fn calls(desk: Addr<Desk>, local: Local<Desk>) {
    let _: u8 = desk.wait().await.unwrap();
    let _: u8 = desk.first(1).await.unwrap();
    let _: u8 = desk.fallible(1).await.unwrap();
    let _: Result<u8, String> = desk.unflattened().await.unwrap();
    let _: Rc<u8> = local.local(Rc::new(1)).await.unwrap();
    let _: () = desk.serve().await.unwrap();
}

pub fn main() {
    let _ = calls;
}
