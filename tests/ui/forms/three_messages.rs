//! The smallest actor that has each kind of message: synchronous, asynchronous and local.

#![forbid(unsafe_code)]
#![deny(warnings)]

use std::rc::Rc;

use greenroom::prelude::*;

#[derive(Default)]
struct Counter {
    total: u64,
}

#[actor(mailbox = 64)]
impl Counter {
    /// Adds `by` and returns the new total.
    pub fn add(&mut self, by: u64) -> u64 {
        self.total += by;
        self.total
    }

    pub async fn take(&mut self, by: u64, _ctx: &mut Ctx<Self>) -> Result<u64, String> {
        self.helper();
        self.total = self.total.checked_sub(by).ok_or("too little")?;
        Ok(self.total)
    }

    #[message(local)]
    pub fn tag(&mut self, tag: Rc<str>, done: Reply<usize>) {
        done.send(tag.len());
    }

    #[skip]
    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn new() -> Self {
        Self::default()
    }

    fn helper(&self) {}
}

fn calls(remote: Addr<Counter>, local: Local<Counter>) {
    drop(remote.add(1));
    drop(remote.take(1));
    drop(local.add(1));
    drop(local.tag(Rc::from("x")));
}

pub fn main() {
    let _ = calls;
    assert_eq!(Counter::new().total(), 0);
}
