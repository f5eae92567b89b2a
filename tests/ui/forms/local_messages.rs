//! Messages that never leave the shard, next to messages that may.

#![forbid(unsafe_code)]
#![deny(warnings)]

use std::cell::RefCell;
use std::rc::Rc;

use greenroom::prelude::*;

type Shared = Rc<RefCell<Vec<u8>>>;

struct Store {
    bytes: Shared,
}

#[actor]
impl Store {
    #[message(local)]
    pub fn share(&self) -> Shared {
        Rc::clone(&self.bytes)
    }

    #[greenroom::message(local)]
    pub async fn replace(&mut self, with: Shared) -> Result<Shared, Rc<str>> {
        Ok(std::mem::replace(&mut self.bytes, with))
    }

    #[message(local)]
    pub fn raw(&self, _pointer: *const u8) {}

    pub fn push(&mut self, byte: u8) {
        self.bytes.borrow_mut().push(byte);
    }

    pub async fn len(&self) -> usize {
        self.bytes.borrow().len()
    }
}

async fn calls(store: Addr<Store>, here: Local<Store>) {
    let shared: Shared = here.share().await.unwrap();
    let _: Shared = here.replace(shared).await.unwrap();
    drop(here.raw(std::ptr::null()));
    let _: () = here.push(1).await.unwrap();
    let _: usize = here.len().await.unwrap();
    let _: () = store.push(1).await.unwrap();
    let _: usize = store.len().await.unwrap();
}

pub fn main() {
    let _ = calls;
}
