//! Wake-ups between shards, as the metrics count them: at most one for each sleep, none for a shard that is awake.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use greenroom_runtime::mesh::{self, Lane, Origin, Resident, ResidentId};
use greenroom_runtime::time::sleep;
use greenroom_runtime::{Builder, Runtime, ShardMetrics, yield_now};

/// Counts what it is sent.
struct Counter {
    total: Arc<AtomicU64>,
    here: Cell<u64>,
}

impl Resident for Counter {
    type Message = [u64; 20];

    fn deliver(&self, _: [u64; 20], _: Origin) {
        self.here.set(self.here.get() + 1);
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    fn undeliverable(_: [u64; 20]) {}
}

fn runtime() -> Runtime {
    Builder::new().shards(2).pin(false).start().unwrap()
}

fn counter(runtime: &Runtime) -> (ResidentId<Counter>, Arc<AtomicU64>) {
    let total = Arc::<AtomicU64>::default();
    let theirs = total.clone();
    let id = runtime.run_on(1, || async move {
        mesh::settle(Rc::new(Counter {
            total: theirs,
            here: Cell::new(0),
        }))
    });
    (id, total)
}

/// Sends so many messages in the current turn; returns how many notices its shard has given by the end of it: doorbells
/// that were rung, and those that were not.
async fn notices_of_a_turn(to: ResidentId<Counter>, messages: u64) -> (u64, u64) {
    // A turn of its own.
    yield_now().await;
    let before = ShardMetrics::current().unwrap();
    for _ in 0..messages {
        to.try_send(Lane::Normal, || [7; 20])
            .expect("there is room");
    }
    yield_now().await;
    let after = ShardMetrics::current().unwrap();
    (
        after.doorbells_sent - before.doorbells_sent,
        after.doorbells_elided - before.doorbells_elided,
    )
}

#[test]
fn a_shard_that_is_awake_is_never_rung() {
    let runtime = runtime();
    let (id, total) = counter(&runtime);
    let (entered, leave) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let (has_entered, may_leave) = (entered.clone(), leave.clone());
    let busy = runtime.handle().spawn_on(1, || async move {
        has_entered.store(true, Ordering::Release);
        while !may_leave.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    });
    runtime.run_on(0, move || async move {
        while !entered.load(Ordering::Acquire) {
            yield_now().await;
        }
        for _ in 0..10 {
            assert_eq!(
                notices_of_a_turn(id, 20).await,
                (0, 1),
                "one notice, no ring"
            );
        }
        leave.store(true, Ordering::Release);
        while total.load(Ordering::Relaxed) < 200 {
            yield_now().await;
        }
    });
    drop(busy);
}

#[test]
fn a_turn_rings_a_sleeping_shard_once() {
    let runtime = runtime();
    let (id, total) = counter(&runtime);
    let rung = runtime.run_on(0, move || async move {
        let mut rung = 0;
        for round in 1..=50 {
            // Time to fall asleep.
            sleep(Duration::from_millis(1)).await;
            let (rings, others) = notices_of_a_turn(id, 20).await;
            assert_eq!(rings + others, 1, "one notice for twenty messages");
            rung += rings;
            while total.load(Ordering::Relaxed) < round * 20 {
                yield_now().await;
            }
        }
        rung
    });
    assert!(rung > 0, "it does sleep");
    let parks = runtime.run_on(1, || async { ShardMetrics::current().unwrap().parks });
    assert!(rung <= parks, "{rung} rings for {parks} sleeps");
}

#[test]
fn a_long_turn_that_publishes_early_rings_at_most_twice() {
    let runtime = runtime();
    let (id, total) = counter(&runtime);
    runtime.run_on(0, move || async move {
        for round in 1..=20 {
            sleep(Duration::from_millis(1)).await;
            // 57 KiB: fourteen early publishes.
            let (rings, _) = notices_of_a_turn(id, 300).await;
            assert!(
                rings <= 2,
                "{rings} rings: one early, one if it fell asleep again"
            );
            while total.load(Ordering::Relaxed) < round * 300 {
                yield_now().await;
            }
        }
    });
}
