//! Where actors are: one on every shard as one act, and pools of workers.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use futures_channel::oneshot;
use futures_util::future::join_all;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom::{Pool, ShardId};
use greenroom_tests::{
    Homely, PATIENCE, block_shard, bounded, bounded_wait, counts, hear, last_shard, on_shards,
    poll_once, start_hasty,
};

const ALL: &[usize] = &[1, 2, 4];

/// One of several.
struct Part {
    refuses: bool,
    gate: Option<oneshot::Receiver<()>>,
    _alive: Homely,
}

#[actor]
impl Part {
    #[on(started)]
    async fn started(&mut self) -> Result<(), &'static str> {
        if let Some(gate) = self.gate.take() {
            gate.await.ok();
        }
        if self.refuses {
            Err("one is missing")
        } else {
            Ok(())
        }
    }

    pub(crate) async fn hold(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }
}

#[test]
fn a_start_on_all_shards_that_fails_on_one_leaves_none() {
    on_shards(ALL, |system| {
        for failing in system.shards() {
            let (dropped, drops) = mpsc::channel();
            let starting = system.spawn_sharded(move |shard| Part {
                refuses: shard == failing,
                gate: None,
                _alive: Homely::new(dropped.clone()),
            });
            let error = system.block_on(starting).unwrap_err();
            assert!(error.to_string().contains("one is missing"), "{error}");
            // None is left when the error is there.
            let at_home: Vec<_> = drops.try_iter().collect();
            assert_eq!(at_home, vec![true; system.shard_count()]);
            assert_eq!(counts(system).actors, 0);
        }
    });
}

#[test]
fn a_start_that_fails_on_one_shard_is_told_though_it_never_ends_on_another() {
    bounded("the grace", || {
        let system = start_hasty(2);
        for failing in system.shards() {
            let (dropped, drops) = mpsc::channel();
            let (_shut, gate) = oneshot::channel();
            let gate = Arc::new(Mutex::new(Some(gate)));
            let starting = system.spawn_sharded(move |shard| Part {
                refuses: shard == failing,
                gate: gate.lock().unwrap().take_if(|_| shard != failing),
                _alive: Homely::new(dropped.clone()),
            });
            let error = system.block_on(starting).unwrap_err();
            assert!(error.to_string().contains("one is missing"), "{error}");
            assert_eq!(drops.try_iter().collect::<Vec<_>>(), [true, true]);
            assert_eq!(counts(&system).actors, 0);
        }
    });
}

#[test]
fn a_start_on_all_shards_that_is_given_up_leaves_none() {
    on_shards(ALL, |system| {
        let late = last_shard(system);
        let (dropped, drops) = mpsc::channel();
        let (open, gate) = oneshot::channel();
        let gate = Arc::new(Mutex::new(Some(gate)));
        let starting = system.spawn_sharded(move |shard| Part {
            refuses: false,
            gate: gate.lock().unwrap().take_if(|_| shard == late.into()),
            _alive: Homely::new(dropped.clone()),
        });
        let mut starting = Box::pin(starting);
        bounded_wait(|| {
            assert!(poll_once(&mut starting).is_pending());
            counts(system).actors == system.shard_count()
        });
        drop(starting);
        drop(open);
        for _ in system.shards() {
            assert!(hear(&drops));
        }
        bounded_wait(|| counts(system).actors == 0);
    });
}

#[test]
fn a_stop_of_all_shards_waits_for_the_last_one() {
    on_shards(ALL, |system| {
        let (dropped, drops) = mpsc::channel();
        let parts = system.block_on(system.spawn_sharded(move |_| Part {
            refuses: false,
            gate: None,
            _alive: Homely::new(dropped.clone()),
        }));
        let parts = parts.unwrap();
        let (open, gate) = oneshot::channel();
        system
            .block_on(parts.on(last_shard(system)).hold(gate).tell())
            .unwrap();
        let mut stopping = Box::pin(parts.stop());
        for _ in 1..system.shard_count() {
            assert!(hear(&drops));
        }
        assert!(poll_once(&mut stopping).is_pending());
        drop(open);
        system.block_on(stopping);
        assert_eq!(drops.try_iter().count(), 1);
    });
}

/// Works, and says who it is.
struct Hand {
    number: usize,
}

#[actor]
impl Hand {
    pub(crate) fn who(&self, ctx: &mut Ctx<Self>) -> (usize, ShardId) {
        (self.number, ctx.shard())
    }

    pub(crate) async fn hold(&mut self, gate: oneshot::Receiver<()>) -> usize {
        gate.await.ok();
        self.number
    }

    pub(crate) fn fail(&mut self) {
        panic!("as told");
    }
}

fn pool(system: &System, size: usize) -> (Pool<Hand>, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let pool = system.block_on(system.pool(size, move |number| {
        counted.fetch_add(1, Ordering::SeqCst);
        Hand { number }
    }));
    (pool.unwrap(), made)
}

#[test]
fn a_round_reaches_every_worker_and_they_are_spread_over_the_shards() {
    on_shards(ALL, |system| {
        let (pool, made) = pool(system, 6);
        assert_eq!((pool.size(), pool.live()), (6, 0));
        let mut by_shard = BTreeMap::new();
        for number in 0..12 {
            let who = system
                .block_on(pool.round_robin().who().into_future())
                .unwrap();
            assert_eq!(who.0, number % 6);
            *by_shard.entry(who.1).or_insert(0) += 1;
        }
        assert_eq!((pool.live(), made.load(Ordering::SeqCst)), (6, 6));
        assert_eq!(by_shard.len(), system.shard_count());
        let (least, most) = (by_shard.values().min(), by_shard.values().max());
        assert!(most.unwrap() - least.unwrap() <= 2, "{by_shard:?}");
        for (number, worker) in pool.each().enumerate() {
            assert_eq!(
                system.block_on(worker.who().into_future()).unwrap().0,
                number
            );
        }
    });
}

#[test]
fn equal_keys_have_one_worker_and_different_ones_many() {
    on_shards(ALL, |system| {
        let (pool, _) = pool(system, 4);
        let mut seen = BTreeMap::new();
        for key in 0..200_u32 {
            let first = system
                .block_on(pool.by_key(&key).who().into_future())
                .unwrap();
            let again = pool.clone();
            let again = system.run_on(0, move || async move { again.by_key(&key).who().await });
            assert_eq!(first, again.unwrap());
            *seen.entry(first.0).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 4, "{seen:?}");
    });
}

#[test]
fn the_least_loaded_worker_is_one_that_no_ask_waits_for() {
    on_shards(ALL, |system| {
        let (pool, _) = pool(system, 4);
        let (open, gates): (Vec<_>, Vec<_>) = (0..3).map(|_| oneshot::channel()).unzip();
        let asking = pool;
        let busy = system.runtime().spawn_on(0, move || async move {
            let asks = gates.into_iter().map(|gate| {
                let asking = asking.clone();
                async move { asking.least_loaded().hold(gate).await.unwrap() }
            });
            join_all(asks).await
        });
        drop(open);
        let mut held = system.block_on(busy).unwrap();
        held.sort_unstable();
        held.dedup();
        assert_eq!(held.len(), 3, "three asks, three workers: {held:?}");
    });
}

#[test]
fn a_worker_that_failed_is_replaced_and_the_others_stay() {
    on_shards(ALL, |system| {
        let (pool, made) = pool(system, 3);
        for _ in 0..3 {
            system
                .block_on(pool.round_robin().who().into_future())
                .unwrap();
        }
        let failed = system.block_on(pool.round_robin().fail().into_future());
        assert!(failed.unwrap_err().panic().is_some());
        for _ in 0..6 {
            system
                .block_on(pool.round_robin().who().into_future())
                .unwrap();
        }
        assert_eq!((pool.live(), made.load(Ordering::SeqCst)), (3, 4));
        system.block_on(pool.stop());
        assert_eq!(pool.live(), 0);
        let refused = system.block_on(pool.by_key("a").who().into_future());
        assert!(refused.unwrap_err().is_stopped());
    });
}

#[test]
fn shared_work_goes_to_a_worker_of_a_shard_that_has_time() {
    on_shards(&[2, 4], |system| {
        let (pool, _) = pool(system, 8);
        // Shard 0 has no time; what it submits is done by others, with workers of theirs.
        let submitted = pool;
        let (entered, has_entered) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let handles = system.runtime().spawn_on(0, move || async move {
            let handles: Vec<_> = (0..200)
                .map(|_| submitted.share(async |worker| worker.who().await.unwrap()))
                .collect();
            entered.send(()).unwrap();
            // Blocks the shard.
            released.recv_timeout(PATIENCE).ok();
            handles
        });
        hear(&has_entered);
        drop(release);
        let handles = system.block_on(handles).unwrap();
        let done = system.block_on(join_all(handles));
        for done in done {
            let (number, shard) = done.unwrap();
            assert_eq!(number % system.shard_count(), shard.index());
        }
    });
}

#[test]
fn shared_work_is_done_while_its_shard_is_blocked() {
    on_shards(&[2], |system| {
        let (pool, _) = pool(system, 2);
        let release = block_shard(system, 0);
        let shared: Vec<_> = (0..4)
            .map(|_| {
                pool.share(async |worker| {
                    yield_now().await;
                    worker.who().await.unwrap()
                })
            })
            .collect();
        // From outside, work goes to the shards in turn: half of it is with the one that runs.
        let (mut first, rest) = {
            let mut shared = shared.into_iter();
            (shared.next().unwrap(), shared)
        };
        let mut rest: Vec<_> = rest.collect();
        bounded_wait(|| {
            let mut all = std::iter::once(&mut first).chain(&mut rest);
            all.any(|handle| poll_once(handle).is_ready())
        });
        drop(release);
    });
}

#[test]
fn every_number_has_a_shard_whose_turn_it_is() {
    on_shards(ALL, |system| {
        let count = system.shard_count();
        for turn in (0..2 * count).chain([usize::MAX - 1, usize::MAX]) {
            let shard = system.shard(turn);
            assert_eq!(shard.index(), turn % count);
            assert_eq!(system.runtime().shard(turn), shard);
            let hand = system.spawn_on(shard, move || Hand { number: turn });
            let (number, there) = system
                .block_on(async { Ok::<_, greenroom::Error>(hand.await?.who().await?) })
                .unwrap();
            assert_eq!((number, there), (turn, shard));
        }
    });
}

#[test]
fn a_pool_without_bounds_is_refused_with_its_size() {
    let system = System::start(1).unwrap();
    for size in [(1 << 20) + 1, 1 << 50, usize::MAX] {
        let refused = catch_unwind(AssertUnwindSafe(|| {
            drop(system.pool(size, |number| Hand { number }));
        }));
        let said = *refused.unwrap_err().downcast::<String>().unwrap();
        let expected = format!("a pool of {size} workers: it takes 1048576 at most");
        assert!(said.starts_with(&expected), "{said}");
    }
    let most = system.block_on(system.pool(1 << 20, |number| Hand { number }));
    assert_eq!(most.unwrap().size(), 1 << 20);
}

#[test]
#[should_panic(expected = "a pool of no workers")]
fn a_pool_of_no_workers_is_refused() {
    let system = System::start(1).unwrap();
    drop(system.pool(0, |number| Hand { number }));
}
