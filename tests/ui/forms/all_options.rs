//! Every option of the attribute and every role of a method in one actor with parameters.

#![deny(warnings)]
#![allow(dead_code)]

use greenroom::Batch;
use greenroom::prelude::*;
use std::collections::HashMap;
use std::hash::Hash;

pub struct All<K, V, const N: usize>
where
    K: Hash,
{
    m: HashMap<K, V>,
    n: [u8; N],
}

#[actor(mailbox = N * 2 + Self::MORE, overflow = reject, name = "all", max_message = 256, concurrent = Self::MORE, trait = pub(crate) AllApi, crate = ::greenroom)]
impl<K, V, const N: usize> All<K, V, N>
where
    K: Hash + Eq + Send + Clone + 'static,
    V: Send + Clone + 'static,
{
    pub const MORE: usize = 3;
    pub fn put(&mut self, #[key] k: K, #[into] v: V) -> Option<V> {
        self.m.insert(k, v)
    }

    #[message(concurrent)]
    pub async fn get(&self, #[key] k: K) -> Option<V> {
        self.m.get(&k).cloned()
    }

    #[message(concurrent, boxed, plain, urgent)]
    pub async fn get_all(
        &self,
        #[key] k: K,
        #[into] _x: String,
        ctx: &mut Ctx<Self>,
    ) -> Result<[u8; N], u8> {
        let _ = (k, ctx);
        Ok(self.n)
    }

    #[message(local, boxed)]
    fn loc(&self, x: std::rc::Rc<K>) -> std::rc::Rc<V> {
        std::rc::Rc::new(self.m[&x].clone())
    }

    #[message(local, concurrent, result)]
    async fn locc(&self, x: std::rc::Rc<K>) -> std::result::Result<std::rc::Rc<V>, std::rc::Rc<K>> {
        match self.m.get(&x) {
            Some(v) => Ok(std::rc::Rc::new(v.clone())),
            None => Err(x),
        }
    }

    #[message(batch = 3, urgent)]
    async fn many(&mut self, all: Batch<(K, V)>) -> usize {
        let mut n = 0;
        for (k, v) in all {
            self.m.insert(k, v);
            n += 1
        }

        n
    }

    #[message(batch, local)]
    fn many_l(&mut self, all: Batch<(std::rc::Rc<K>, Reply<std::rc::Rc<K>>)>) {
        for (k, r) in all {
            r.send(k)
        }
    }

    #[message(boxed)]
    pub fn later(&mut self, k: K, reply: Reply<Result<V, String>>) {
        reply.send(self.m.get(&k).cloned().ok_or("no".into()))
    }

    #[every(100s, missed = delay)]
    pub(crate) fn tick(&mut self, _: &mut Ctx<Self>) {}
    #[every(Self::period())]
    async fn tock(&self) -> Result<(), String> {
        Ok(())
    }

    fn period() -> std::time::Duration {
        std::time::Duration::from_secs(N as u64 + 100)
    }

    #[on(started)]
    async fn st(&mut self, _: &mut Ctx<Self>) -> Result<(), String> {
        Ok(())
    }

    #[on(stopping)]
    fn sp(&mut self) {}
    #[on(down)]
    fn dn(&mut self, _: greenroom::Down) {}
    #[on(child_exit)]
    async fn ce(&mut self, _: &mut Ctx<Self>, _: greenroom::ChildExit) {}
    #[on(error)]
    fn er(&mut self, _e: greenroom::ToldError, _: &mut Ctx<Self>) {}
    #[skip]
    pub fn n(&self) -> &[u8; N] {
        &self.n
    }
}

fn dynamic(a: &dyn AllApi<String, u8, 2>) {
    let _ = a.put("a".into(), 1);
}

pub(crate) fn main() -> Result<(), greenroom::Error> {
    let system = System::start(2)?;
    system.block_on(async {
        let a = system
            .spawn_on(1, || All::<String, u8, 2> {
                m: HashMap::new(),
                n: [1, 2],
            })
            .await?;
        assert_eq!(a.put("a".to_owned(), 1).await?, None);
        assert_eq!(a.get("a".to_owned()).await?, Some(1));
        assert_eq!(a.get_all("a".to_owned(), "x").await?, Ok([1, 2]));
        assert_eq!(a.many("b".to_owned(), 5).await?, 1);
        assert_eq!(a.later("b".to_owned()).await?, 5);
        dynamic(&*a);
        Ok::<_, greenroom::Error>(())
    })
}
