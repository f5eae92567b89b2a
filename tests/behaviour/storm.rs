//! Random calls, moves and ends all over three shards: afterwards every account is settled.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use greenroom::prelude::*;
use greenroom::runtime::time::sleep;
use greenroom::runtime::{ShardCounts, yield_now};
use greenroom::{Handle, HandlerRan};
use greenroom_tests::{bounded, counts, start};

/// Operations of each driver.
const OPERATIONS: usize = 600;
const DRIVERS: usize = 6;
const IDS: usize = OPERATIONS * DRIVERS;

/// A small generator, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

struct Books {
    begun: Vec<AtomicU8>,
    /// Told and accepted: must have begun or be a dead letter.
    told: Vec<AtomicU8>,
    /// Asked without learning whether the handler ran, or told that it did not: may be a dead letter.
    open: AtomicU64,
}

struct Leaf {
    books: Arc<Books>,
    kept: Vec<Reply<usize>>,
}

#[actor(mailbox = 3)]
impl Leaf {
    pub(crate) fn quick(&mut self, id: usize) -> usize {
        self.begin(id);
        id
    }

    pub(crate) async fn slow(&mut self, id: usize) -> usize {
        self.begin(id);
        if id.is_multiple_of(7) {
            sleep(Duration::from_millis(1)).await;
        } else {
            yield_now().await;
        }
        id
    }

    pub(crate) fn keep(&mut self, id: usize, reply: Reply<usize>) {
        self.begin(id);
        self.kept.push(reply);
        if self.kept.len() > 2 {
            self.kept.remove(0).send(id);
        }
    }

    pub(crate) fn fail(&mut self, id: usize) {
        self.begin(id);
        panic!("a leaf falls");
    }

    fn begin(&self, id: usize) {
        self.books.begun[id].fetch_add(1, Ordering::Relaxed);
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<usize, CallError>> + Send>>;

/// What the drivers share: actors, and asks that were begun by one and are ended by another.
struct Field {
    system: Handle,
    books: Arc<Books>,
    leaves: Mutex<Vec<Addr<Leaf>>>,
    begun: Mutex<Vec<Answer>>,
}

impl Field {
    async fn grow(&self, dice: &mut Dice) -> Addr<Leaf> {
        let shard = u16::try_from(dice.roll(3)).unwrap();
        let books = self.books.clone();
        let leaf = self
            .system
            .spawn_on(shard, || Leaf {
                books,
                kept: Vec::new(),
            })
            .await
            .unwrap();
        self.leaves.lock().unwrap().push(leaf);
        leaf
    }

    async fn pick(&self, dice: &mut Dice) -> Addr<Leaf> {
        let count = self.leaves.lock().unwrap().len();
        if count < 6 {
            return self.grow(dice).await;
        }
        let leaf = self.leaves.lock().unwrap().get(dice.roll(count)).copied();
        match leaf {
            Some(leaf) => leaf,
            None => self.grow(dice).await,
        }
    }

    fn settle_ask(&self, answer: Result<usize, CallError>) {
        match answer {
            Ok(_) => {}
            Err(error) if error.handler_ran() == HandlerRan::Yes => {}
            Err(_) => {
                self.books.open.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Drops an ask without learning how it went.
    fn abandon(&self, ask: Answer) {
        self.books.open.fetch_add(1, Ordering::Relaxed);
        drop(ask);
    }

    async fn act(&self, dice: &mut Dice, id: usize) {
        let leaf = self.pick(dice).await;
        match dice.roll(20) {
            0 => drop(self.grow(dice).await),
            1 => Addr::stop(leaf),
            2 => Addr::kill(leaf),
            3 => drop(leaf.fail(id).await),
            4..=6 => self.tell(id, leaf.quick(id).tell().await.is_ok()),
            7 | 8 => self.tell(id, leaf.slow(id).try_tell().is_ok()),
            9 | 10 => self.settle_ask(leaf.slow(id).await),
            11 => self.settle_ask(leaf.quick(id).await),
            12 | 13 => self.settle_ask(leaf.slow(id).timeout(Duration::from_millis(1)).await),
            14 => self.settle_ask(leaf.keep(id).timeout(Duration::from_millis(2)).await),
            15 | 16 => {
                let mut ask: Answer = Box::pin(leaf.slow(id).into_future());
                self.poll_and_pass_on(&mut ask).await;
                self.abandon(ask);
            }
            17 => {
                let mut ask: Answer = Box::pin(leaf.slow(id).timeout(Duration::from_millis(3)));
                match self.poll_and_pass_on(&mut ask).await {
                    Some(answer) => self.settle_ask(answer),
                    None => self.begun.lock().unwrap().push(ask),
                }
            }
            _ => {
                let taken = self.begun.lock().unwrap().pop();
                match taken {
                    Some(ask) if dice.roll(2) == 0 => self.abandon(ask),
                    Some(ask) => self.settle_ask(ask.await),
                    None => yield_now().await,
                }
            }
        }
    }

    fn tell(&self, id: usize, accepted: bool) {
        // From outside a refusal may have been counted at the actor's shard.
        if accepted {
            self.books.told[id].store(1, Ordering::Relaxed);
        } else {
            self.books.open.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One poll, in a task's own context.
    async fn poll_and_pass_on(&self, ask: &mut Answer) -> Option<Result<usize, CallError>> {
        std::future::poll_fn(|cx| match ask.as_mut().poll(cx) {
            std::task::Poll::Ready(answer) => std::task::Poll::Ready(Some(answer)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }
}

async fn drive(field: Arc<Field>, seed: u64, driver: usize) {
    let mut dice = Dice(seed ^ (driver as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for id in driver * OPERATIONS..(driver + 1) * OPERATIONS {
        field.act(&mut dice, id).await;
    }
}

/// What is left on each shard: askers, timers and tasks, without the one that counts.
fn left(system: &System) -> Vec<(usize, usize, usize)> {
    let shards = system.shards().map(|shard| {
        let counts = system.run_on(shard, || async { ShardCounts::current().unwrap() });
        (counts.open_replies, counts.timers, counts.tasks)
    });
    shards.collect()
}

fn weather(seed: u64) {
    let system = start(3);
    let before = left(&system);
    let zeros = || (0..IDS).map(|_| AtomicU8::new(0)).collect();
    let books = Arc::new(Books {
        begun: zeros(),
        told: zeros(),
        open: AtomicU64::new(0),
    });
    let field = Arc::new(Field {
        system: system.handle().clone(),
        books: books.clone(),
        leaves: Mutex::default(),
        begun: Mutex::default(),
    });
    let inside: Vec<_> = (0..DRIVERS - 1)
        .map(|driver| {
            let (field, shard) = (field.clone(), u16::try_from(driver % 3).unwrap());
            system
                .runtime()
                .spawn_on(shard, move || drive(field, seed, driver))
        })
        .collect();
    system.block_on(drive(field.clone(), seed, DRIVERS - 1));
    for driver in inside {
        system.block_on(driver).unwrap();
    }
    let asks = std::mem::take(&mut *field.begun.lock().unwrap());
    asks.into_iter().for_each(|ask| field.abandon(ask));
    for leaf in field.leaves.lock().unwrap().drain(..) {
        Addr::stop(leaf);
        system.block_on(Addr::stopped(leaf));
    }
    // Givings-up and last records of other shards are still on their way; every round lets each shard take a turn.
    let mut after = left(&system);
    for _ in 0..20_000 {
        if after == before {
            break;
        }
        after = left(&system);
    }
    assert_eq!(
        after, before,
        "open replies, timers and tasks of each shard"
    );
    let counts = counts(&system);
    assert_eq!(counts.actors, 0);
    assert!(
        books
            .begun
            .iter()
            .all(|times| times.load(Ordering::Relaxed) <= 1),
        "nothing is handled twice"
    );
    let lost = books.told.iter().zip(&books.begun).filter(|(told, begun)| {
        told.load(Ordering::Relaxed) == 1 && begun.load(Ordering::Relaxed) == 0
    });
    let (least, open) = (lost.count() as u64, books.open.load(Ordering::Relaxed));
    let dead = counts.dead_letters;
    assert!(
        (least..=least + open + counts.panics).contains(&dead),
        "{dead} dead letters, {least} of {open} expected"
    );
}

#[test]
fn after_a_storm_of_random_operations_nothing_is_left_and_all_counts_add_up() {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let chosen = std::env::var("STORM_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = chosen.unwrap_or_else(|| u64::try_from(now & u128::from(u64::MAX)).unwrap());
    for round in 0..3 {
        let seed = seed.wrapping_add(round);
        println!("STORM_SEED={seed}");
        bounded(&format!("the storm with seed {seed}"), move || {
            weather(seed);
        });
    }
}
