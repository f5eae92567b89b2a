//! Messages that find the instance of their key.

#![forbid(unsafe_code)]
#![deny(warnings)]

use std::collections::HashMap;
use std::hash::Hash;

use greenroom::prelude::*;

struct Cache<K> {
    entries: HashMap<K, Vec<u32>>,
}

#[actor]
impl<K: Hash + Eq + Send + 'static> Cache<K> {
    pub fn put(&mut self, value: u32, #[key] key: K) {
        self.entries.entry(key).or_default().push(value);
    }

    #[message(boxed, result)]
    pub async fn get(
        &self,
        ctx: &mut Ctx<Self>,
        #[greenroom::key] key: K,
        position: usize,
    ) -> Result<u32, String> {
        let _ = ctx;
        let values = self.entries.get(&key).ok_or("no such key")?;
        values.get(position).copied().ok_or_else(|| "no such value".to_owned())
    }

    #[message(urgent)]
    pub fn forget(&mut self, #[key] key: K, reply: Reply<bool>) {
        reply.send(self.entries.remove(&key).is_some());
    }

    #[message(concurrent)]
    pub async fn has(&self, #[key] key: K) -> bool {
        self.entries.contains_key(&key)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(any())]
    pub fn gone(&self, #[key] key: K) {}

    #[message(local)]
    pub fn name(&self, name: std::rc::Rc<str>) {
        let _ = name;
    }
}

struct Table;

mod api {
    #![allow(dead_code)]

    use greenroom::prelude::*;

    use super::Table;

    #[actor(trait = pub(crate) TableApi)]
    impl Table {
        pub(crate) fn row(&self, #[into] #[key] name: String, (_, y): (u8, u8)) -> usize {
            name.len() + usize::from(y)
        }

        pub(crate) fn cell(&self, #[key] (row, column): (u32, u32)) -> u32 {
            row * column
        }

        #[every(1h)]
        fn tidy(&mut self) {}

        pub(crate) fn later(&self, ctx: &mut Ctx<Self>) {
            ctx.after(std::time::Duration::from_secs(3600)).cell((1, 1));
            ctx.local().cell((1, 2)).try_tell().ok();
        }

        #[message]
        fn hidden(&self, #[key] key: u8) {
            let _ = key;
        }
    }
}

use api::TableApi;

pub fn main() -> Result<(), greenroom::Error> {
    // The method itself knows nothing of keys.
    assert_eq!(Table.cell((2, 3)), 6);
    let system = System::start(2)?;
    system.block_on(async {
        let cache = system.spawn_sharded(|_| Cache { entries: HashMap::new() }).await?;
        let route = cache.route();
        for key in 0_u64..8 {
            route.put(1, key).tell().await?;
            route.put(2, key).await?;
        }
        assert_eq!(cache.route().get(3, 1).await.ok(), Some(2));
        assert!(route.get(9, 0).await.is_err());
        assert!(route.forget(3).await?);
        assert!(!route.has(3).await?);
        assert_eq!(cache.map_reduce(|part| part.len(), 0, |sum, len| sum + len).await?, 7);

        let table = system.spawn_sharded(|_| Table).await?;
        assert_eq!(table.route().row("four", (0, 3)).await?, 7);
        assert_eq!(table.route().cell((2, 3)).await?, 6);
        let one: &dyn TableApi = &*table.by_key(&(2, 3));
        assert_eq!(one.cell((2, 3)).await?, 6);
        Ok::<(), greenroom::Error>(())
    })
}
