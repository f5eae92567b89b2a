//! Actors by key: started by their first message, gone when idle, never two of a key, and nothing is lost on the way.
//!
//! Here is what the tests look at; `order` is about messages on their way, `life` about instances.

mod life;
mod order;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;

const ALL: &[usize] = &[1, 2, 4];

/// What happens to instances, seen from the test.
#[derive(Default)]
struct World {
    /// Instances alive, by key.
    alive: Mutex<HashMap<u64, usize>>,
    made: AtomicUsize,
    /// What instances were told, in order: key, sender, number.
    seen: Mutex<Vec<(u64, u32, u64)>>,
}

impl World {
    fn seen_by(&self, key: u64) -> Vec<(u32, u64)> {
        let seen = self.seen.lock().unwrap();
        let of_key = seen.iter().filter(|(of, ..)| *of == key);
        of_key
            .map(|(_, sender, number)| (*sender, *number))
            .collect()
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }
}

/// An instance.
struct Account {
    key: u64,
    world: Arc<World>,
    /// Waited for by the stopping hook.
    last_wish: Option<oneshot::Receiver<()>>,
    ended: Option<mpsc::Sender<u64>>,
}

impl Account {
    fn new(key: u64, world: &Arc<World>) -> Self {
        let mut alive = world.alive.lock().unwrap();
        let count = alive.entry(key).or_default();
        *count += 1;
        assert_eq!(*count, 1, "two instances of {key} are alive");
        world.made.fetch_add(1, Ordering::SeqCst);
        Self {
            key,
            world: world.clone(),
            last_wish: None,
            ended: None,
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        *self.world.alive.lock().unwrap().get_mut(&self.key).unwrap() -= 1;
        if let Some(ended) = &self.ended {
            // The test may have ended.
            ended.send(self.key).ok();
        }
    }
}

#[actor(mailbox = 8)]
impl Account {
    pub(crate) fn note(&mut self, sender: u32, number: u64) -> u64 {
        self.world
            .seen
            .lock()
            .unwrap()
            .push((self.key, sender, number));
        number
    }

    pub(crate) fn shard(&self, ctx: &mut Ctx<Self>) -> greenroom::ShardId {
        ctx.shard()
    }

    pub(crate) fn passivate(&mut self, ctx: &mut Ctx<Self>) {
        ctx.passivate();
    }

    pub(crate) fn passivate_slowly(&mut self, gate: oneshot::Receiver<()>, ctx: &mut Ctx<Self>) {
        self.last_wish = Some(gate);
        ctx.passivate();
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) async fn note_slowly(&mut self, sender: u32, number: u64) {
        yield_now().await;
        self.note(sender, number);
    }

    pub(crate) fn fail(&mut self) {
        panic!("as told");
    }

    pub(crate) fn kill_self(&mut self, ctx: &mut Ctx<Self>) {
        Addr::kill(ctx.addr());
    }

    pub(crate) fn tell_of_end(&mut self, ended: mpsc::Sender<u64>) {
        self.ended = Some(ended);
    }

    #[on(stopping)]
    async fn stopping(&mut self) {
        if let Some(gate) = self.last_wish.take() {
            gate.await.ok();
        }
    }
}

fn accounts(system: &System, world: &Arc<World>) -> Keyed<u64, Account> {
    let world = world.clone();
    let starting = system
        .keyed(move |key: &u64| Account::new(*key, &world))
        .start();
    system.block_on(starting).unwrap()
}

/// A key of a shard.
fn key_on(accounts: &Keyed<u64, Account>, shard: u16) -> u64 {
    (0..)
        .find(|key| accounts.shard_of(key) == shard.into())
        .unwrap()
}
