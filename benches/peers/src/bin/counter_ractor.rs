//! A counter with ractor: the book shows it, line by line.

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call};

struct Counter;

enum Message {
    Add(u64),
    Get(RpcReplyPort<u64>),
}

impl Actor for Counter {
    type Msg = Message;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        n: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Add(by) => *n += by,
            Message::Get(reply) => reply.send(*n)?,
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), ActorProcessingErr> {
    let (counter, _) = Actor::spawn(None, Counter, ()).await?;
    counter.cast(Message::Add(5))?;
    assert_eq!(call!(counter, Message::Get)?, 5);
    Ok(())
}
