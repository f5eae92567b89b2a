//! The shapes that a batching handler may have.

#![deny(warnings)]

use std::rc::Rc;

use greenroom::prelude::*;
use greenroom::{Batch, Recipient, tell_many};

/// An item that is no tuple, and is called like the type of the framework.
pub struct Line(pub String);

#[derive(Default)]
pub struct Journal<T> {
    items: Vec<T>,
    calls: usize,
}

#[actor(mailbox = 128)]
impl<T: Send + 'static> Journal<T> {
    /// One argument, one answer for all.
    #[message(batch)]
    pub fn one(&mut self, items: Batch<T>) -> usize {
        self.items.extend(items);
        self.items.len()
    }

    /// Several arguments, with the context before the batch.
    #[message(batch = 128)]
    pub async fn several(&mut self, ctx: &mut Ctx<Self>, items: Batch<(T, u8)>) -> Result<(), String> {
        let _ = ctx;
        for (item, _) in items {
            self.items.push(item);
        }
        Ok(())
    }

    /// An answer for each.
    #[message(batch)]
    pub fn each(&mut self, items: Batch<(T, Reply<bool>)>, _ctx: &mut Ctx<Self>) {
        for (item, reply) in items {
            self.items.push(item);
            reply.send(true);
        }
    }

    #[message(batch, plain)]
    pub fn plain(&mut self, items: Batch<(Line, Reply<Result<usize, String>>)>) {
        for (Line(text), reply) in items {
            reply.send(Ok(text.len()));
        }
    }

    #[message(batch, urgent)]
    pub fn nothing(&self, items: greenroom::Batch<()>) {
        assert!(items.len() > 0);
    }

    #[message(local, batch)]
    pub fn local(&mut self, items: Batch<(Rc<T>, Option<T>)>) {
        self.calls += items.iter().count();
    }
}

pub fn main() -> Result<(), greenroom::Error> {
    let system = System::start(1)?;
    system.run_on(0, || async {
        let journal = greenroom::spawn(Journal { items: vec![0_u32], calls: 0 });
        assert_eq!(journal.one(1).await?, 2);
        journal.several(2, 0).await?;
        assert!(journal.each(3).await?);
        assert_eq!(journal.plain(Line("text".to_owned())).await?, Ok(4));
        journal.nothing().await?;
        tell_many((4..8).map(|item| journal.one(item))).await?;
        Recipient::new(journal, |journal, item: u32| journal.several(item, 9))
            .tell(8)
            .await?;
        let local = Addr::local(journal).expect("it lives here");
        local.local(Rc::new(1), None).await?;
        assert_eq!(journal.one(9).await?, 10);
        Ok(())
    })
}
