//! A crate whose documentation is looked at.

use std::rc::Rc;

use greenroom::prelude::*;

/// Why nothing was sold.
#[derive(Debug)]
pub struct SoldOut;

/// A stock of apples.
#[derive(Debug)]
pub struct Stock {
    apples: u32,
}

#[actor(mailbox = 16, concurrent = 4, trait = Shop)]
impl Stock {
    /// Buys apples, and tells how many are left.
    pub fn buy(&mut self, #[into] count: u32) -> Result<u32, SoldOut> {
        self.apples = self.apples.checked_sub(count).ok_or(SoldOut)?;
        Ok(self.apples)
    }

    /// Looks for an apple.
    #[message(concurrent)]
    pub async fn look(&self, #[key] name: String, _: &mut Ctx<Self>) -> bool {
        self.apples > 0 && !name.is_empty()
    }

    /// A label that stays on its shard.
    #[message(local)]
    pub fn label(&self) -> Rc<str> {
        self.apples.to_string().into()
    }

    /// Answers when apples come.
    pub fn wait(&mut self, reply: Reply<u32>) {
        reply.send(self.apples);
    }

    #[every(5s)]
    fn rot(&mut self) {
        self.apples = self.apples.saturating_sub(1);
    }

    #[on(started)]
    fn open(&mut self) {}
}

/// Keeps what it is given.
#[derive(Debug)]
pub struct Shelf<T> {
    items: Vec<T>,
}

#[actor]
impl<T: Clone + Send + 'static> Shelf<T> {
    /// Puts an item on it.
    pub fn put(&mut self, item: T) {
        self.items.push(item);
    }
}

fn main() {}
