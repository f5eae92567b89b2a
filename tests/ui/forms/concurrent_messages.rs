//! Messages that are handled side by side, in every form.

#![forbid(unsafe_code)]
#![deny(warnings)]

use std::io;
use std::rc::Rc;

use greenroom::prelude::*;

struct Store<K, const N: usize> {
    rows: Rc<[K]>,
}

#[actor(concurrent = LIMIT, trait = StoreApi)]
impl<K: Clone + Send + 'static, const N: usize> Store<K, N> {
    #[message(concurrent)]
    pub async fn get(&self, row: usize) -> Option<K> {
        self.rows.get(row).cloned()
    }

    #[message(concurrent, boxed)]
    pub async fn find(self: &Self, #[into] name: String, ctx: &mut Ctx<Self>) -> io::Result<usize> {
        let _ = (name, ctx);
        Ok(N)
    }

    #[message(concurrent, local)]
    async fn share(&self) -> Rc<[K]> {
        Rc::clone(&self.rows)
    }

    #[message(concurrent)]
    pub async fn later(&self, reply: Reply<usize>) {
        reply.send(self.rows.len());
    }

    #[cfg(any())]
    #[message(concurrent)]
    pub async fn missing(&self, nothing: Nothing) {}

    pub fn put(&mut self, rows: Vec<K>) {
        self.rows = rows.into();
    }
}

const LIMIT: usize = 2;

/// All of its messages are concurrent.
struct Wall;

#[actor]
impl Wall {
    #[message(concurrent)]
    pub async fn look(&self) {}
}

pub fn main() -> Result<(), greenroom::Error> {
    let system = System::start(2)?;
    system.block_on(async {
        let store = system.spawn_on(1, || Store::<u8, 7> { rows: Rc::new([]) }).await?;
        store.put(vec![1, 2]).await?;
        assert_eq!(store.get(1).await?, Some(2));
        assert_eq!(store.find("x").await?, 7);
        assert_eq!(store.later().await?, 2);
        let api: &dyn StoreApi<u8, 7> = &*store;
        assert_eq!(api.get(0).await?, Some(1));
        let wall = system.spawn_on(0, || Wall).await?;
        wall.look().await?;
        Ok::<(), greenroom::Error>(())
    })?;
    let shared = system.run_on(1, || async {
        let store = greenroom::spawn(Store::<u8, 7> { rows: Rc::new([9]) });
        let here = Addr::local(store).ok_or("not here")?;
        let shared = here.share().await.map_err(|_| "no answer")?;
        Ok::<_, &str>(shared.to_vec())
    });
    assert_eq!(shared, Ok(vec![9]));
    Ok(())
}
