//! Arguments in a box: fewer bytes for each message of the mailbox.

#![forbid(unsafe_code)]
#![deny(warnings)]

use std::rc::Rc;

use greenroom::prelude::*;

#[derive(Default)]
struct Store {
    bytes: usize,
}

#[actor(max_message = 16)]
impl Store {
    #[message(boxed)]
    pub fn put(&mut self, page: [u8; 4000], (key, _): (String, u8)) -> usize {
        self.bytes += page.len() + key.len();
        self.bytes
    }

    #[message(boxed)]
    pub async fn check(&self, page: [u8; 4000], ctx: &mut Ctx<Self>) -> Result<usize, String> {
        let _ = (page, ctx);
        Ok(self.bytes)
    }

    #[message(boxed, local)]
    pub fn share(&mut self, page: Rc<[u8]>, reply: Reply<Rc<[u8]>>) {
        reply.send(page);
    }

    pub fn small(&self, first: u64, second: u64) -> u64 {
        first + second
    }
}

struct Cache<const N: usize>;

#[actor(max_message = LIMIT)]
impl<const N: usize> Cache<N> {
    pub fn put(&self, page: [u8; N]) -> usize {
        page.len()
    }
}

const LIMIT: usize = 100;

pub fn main() -> Result<(), greenroom::Error> {
    let system = System::start(2)?;
    system.block_on(async {
        let store = system.spawn_on(1, Store::default).await?;
        assert_eq!(store.put([0; 4000], ("four".to_owned(), 0)).await?, 4004);
        assert_eq!(store.check([0; 4000]).await?, 4004);
        let refused = {
            Addr::stop(store);
            Addr::stopped(store).await;
            store.put([7; 4000], (String::new(), 1)).try_tell()
        };
        drop(refused);
        let cache = system.spawn_on(0, || Cache::<100>).await?;
        assert_eq!(cache.put([0; 100]).await?, 100);
        Ok::<(), greenroom::Error>(())
    })
}
