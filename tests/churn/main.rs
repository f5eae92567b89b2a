//! What a great many actors leave behind when they are gone: nothing.

#![expect(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::time::sleep;
use greenroom::{ActorId, ExitReason, Owned, Restart, SpawnError};
use greenroom_tests::bounded;

/// Counts the bytes that are held, on the way to the system's allocator.
struct Counting;

static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // ORDERING: Relaxed; a count, read when nothing happens.
        LIVE_BYTES.fetch_add(bytes(layout), Ordering::Relaxed);
        // SAFETY: our caller's contract is the callee's.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // ORDERING: Relaxed; a count, read when nothing happens.
        LIVE_BYTES.fetch_sub(bytes(layout), Ordering::Relaxed);
        // SAFETY: our caller's contract is the callee's.
        unsafe { Heap.dealloc(pointer, layout) }
    }
}

fn bytes(layout: Layout) -> i64 {
    i64::try_from(layout.size()).unwrap_or(i64::MAX)
}

#[global_allocator]
static HEAP: Counting = Counting;

/// How many actors live and end in a run.
const ACTORS: usize = if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

/// How many there are at a time, about.
const AT_A_TIME: usize = 100;

/// Lives, and ends in every way there is.
#[derive(Default)]
struct Mayfly {
    days: Vec<u8>,
}

#[actor(mailbox = 16)]
impl Mayfly {
    pub(crate) fn live(&mut self, day: u8) -> usize {
        self.days.push(day);
        self.days.len()
    }

    pub(crate) fn panic(&mut self) {
        panic!("caught by a bird");
    }

    pub(crate) fn fail(&mut self, ctx: &mut Ctx<Self>) {
        ctx.fail("caught by a fish");
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn stop(&mut self, ctx: &mut Ctx<Self>) {
        ctx.stop();
    }
}

/// Has children, and watches and links what it is told to.
struct Pond;

#[actor(mailbox = 16)]
impl Pond {
    pub(crate) async fn spawn(
        &mut self,
        shard: u16,
        ctx: &mut Ctx<Self>,
    ) -> Result<Addr<Mayfly>, SpawnError> {
        let child = ctx.spawn_child(Mayfly::default).on(shard);
        child
            .restart(Restart::OnFailure)
            .intensity(100, Duration::from_secs(1))
            .backoff(Duration::from_micros(1), Duration::from_micros(1))
            .await
    }

    pub(crate) fn adopt(&mut self, ctx: &mut Ctx<Self>) -> Addr<Mayfly> {
        ctx.adopt(Mayfly::default())
    }

    pub(crate) fn befriend(&mut self, one: Addr<Mayfly>, other: Addr<Mayfly>, ctx: &mut Ctx<Self>) {
        ctx.watch(one);
        ctx.link(other);
    }

    pub(crate) fn children(&self, ctx: &mut Ctx<Self>) -> Vec<ActorId> {
        ctx.children()
    }
}

/// One actor without ties, on the calling shard.
async fn one(number: usize) {
    let fly = greenroom::spawn(Mayfly::default());
    for day in 0..3 {
        fly.live(day).tell().await.unwrap();
    }
    match number % 7 {
        0 => Addr::kill(fly),
        1 => drop(Owned::new(fly)),
        2 => fly.fail().tell().await.unwrap(),
        3 => fly.stop().tell().await.unwrap(),
        4 if number % 21 == 4 => fly.panic().tell().await.unwrap(),
        5 => Addr::stop_now(fly),
        _ => Addr::stop(fly),
    }
    let down = Addr::watch(fly).await;
    assert!(
        !matches!(down.reason, ExitReason::GraceExpired(_)),
        "{down}"
    );
}

/// A family of six, on two shards.
async fn family(shards: u16, stays: Addr<Mayfly>) {
    let pond = greenroom::spawn_started(Pond).await.unwrap();
    let first = pond.spawn(0).await.unwrap();
    let second = pond.spawn(shards - 1).await.unwrap();
    let third = pond.adopt().await.unwrap();
    // One watcher and one link end with the family, not with what they are about.
    let other = greenroom::spawn(Mayfly::default());
    pond.befriend(stays, other).await.unwrap();
    first.fail().tell().await.unwrap();
    assert_eq!(first.live(1).await.unwrap(), 1, "another incarnation");
    let (_open, gate) = oneshot::channel();
    second.wait(gate).tell().await.unwrap();
    third.stop().await.unwrap();
    assert!(pond.children().await.unwrap().len() >= 2);
    Addr::kill(second);
    Addr::stop(pond);
    Addr::stopped(pond).await;
    Addr::stopped(first).await;
    Addr::kill(other);
    Addr::stopped(other).await;
}

/// Lets so many actors live, on all shards.
fn churn(system: &System, actors: usize, stays: Addr<Mayfly>) {
    let shards = u16::try_from(system.shard_count()).unwrap();
    let rounds = actors / AT_A_TIME / system.shard_count();
    let churning: Vec<_> = system
        .shards()
        .map(|shard| {
            system.runtime().spawn_on(shard, move || async move {
                for _ in 0..rounds {
                    let alone = (0..AT_A_TIME - 6).map(one);
                    futures_util::join!(
                        futures_util::future::join_all(alone),
                        family(shards, stays)
                    );
                }
            })
        })
        .collect();
    for churning in churning {
        system.block_on(churning).unwrap();
    }
}

/// What is held when everything that ended has been cleared away.
fn settled(system: &System) -> i64 {
    system.block_on(system.drain());
    for shard in system.shards() {
        // Actors that stopped in time are forgotten when the list of graces is looked at next.
        system.run_on(shard, || sleep(Duration::from_millis(250)));
    }
    assert_eq!(
        system.block_on(system.counts()).actors,
        1,
        "the one that stays"
    );
    // ORDERING: Relaxed; nothing happens.
    LIVE_BYTES.load(Ordering::Relaxed)
}

fn check(shards: usize) {
    bounded("the churn", move || {
        let system = System::builder().shards(shards).pin(false).start().unwrap();
        let stays = system
            .block_on(system.spawn_on(0, Mayfly::default))
            .unwrap();
        churn(&system, ACTORS / 10, stays);
        let before = settled(&system);
        churn(&system, ACTORS, stays);
        let after = settled(&system);
        // What is kept from the busiest moment, such as queues, may be greater by a step than it was in the first churn.
        let step = (before / 100).max(4096);
        assert!(
            after <= before + step,
            "{before} bytes before, {after} after"
        );
        for shard in system.shards() {
            let held = system.run_on(shard, || async {
                greenroom::runtime::ShardCounts::current().unwrap()
            });
            assert_eq!(
                (held.tasks, held.timers, held.open_replies),
                (1 + usize::from(shard.index() == 0), 0, 0),
                "this task, and the actor that stays"
            );
        }
        let down = Addr::watch(stays);
        Addr::stop(stays);
        assert!(system.block_on(down).reason.is_orderly());
    });
}

/// Panics are part of the program here, and too many to be printed.
fn quietly() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if greenroom::runtime::current_shard().is_none() {
            previous(info);
        }
    }));
}

/// One test after the other: the heap is counted for all of them.
#[test]
fn actors_that_are_gone_leave_nothing_on_one_shard_and_on_two() {
    quietly();
    for shards in [1, 2] {
        check(shards);
    }
}
