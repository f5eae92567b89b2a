//! What is counted of the actors of each type.

use std::time::{Duration, Instant};

use futures_channel::oneshot;
use greenroom::observe::TypeMetrics;
use greenroom::prelude::*;
use greenroom::runtime::{time, yield_now};
use greenroom::{Batch, Restart};
use greenroom_tests::{block_shard, bounded, bounded_wait, last_shard, on_shards};

#[derive(Default)]
struct Clerk;

#[actor(mailbox = 8)]
impl Clerk {
    pub(crate) fn file(&mut self) {}

    pub(crate) async fn think(&mut self) {
        yield_now().await;
    }

    pub(crate) fn sign(&mut self, is_valid: bool) -> Result<(), &'static str> {
        is_valid.then_some(()).ok_or("no stamp")
    }

    pub(crate) async fn check(&mut self, is_valid: bool) -> Result<(), &'static str> {
        yield_now().await;
        self.sign(is_valid)
    }

    #[message(concurrent)]
    pub(crate) async fn read(&self) {
        yield_now().await;
    }

    pub(crate) fn remind(&mut self, ctx: &mut Ctx<Self>) {
        ctx.after(Duration::from_millis(1)).file();
    }

    /// Handles several messages at a time.
    #[message(batch)]
    pub(crate) fn stamp(&mut self, _letters: Batch<u32>) {}

    pub(crate) fn panic(&mut self) {
        panic!("out of ink");
    }

    pub(crate) async fn hold(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    /// Works for so long.
    pub(crate) fn work(&mut self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {}
    }

    /// Waits for so long, and does nothing.
    pub(crate) async fn rest(&mut self, length: Duration) {
        time::sleep(length).await;
    }
}

struct Office;

#[actor]
impl Office {
    pub(crate) async fn hire(&mut self, ctx: &mut Ctx<Self>) -> Addr<Clerk> {
        let child = ctx.spawn_child(Clerk::default);
        let child = child.restart(Restart::OnFailure);
        child
            .backoff(Duration::from_millis(1), Duration::from_millis(8))
            .await
            .unwrap()
    }

    /// Has a clerk of the same shard work, which is none of this actor's.
    pub(crate) async fn delegate(&mut self, clerk: Addr<Clerk>, time: Duration) {
        clerk.work(time).await.unwrap();
    }
}

fn sums(system: &System, name: &str) -> TypeMetrics {
    let sums = system.metrics().sums();
    let mut found = sums.into_iter().filter(|sum| sum.actor == name);
    let sum = found
        .next()
        .unwrap_or_else(|| panic!("no {name} was counted"));
    assert!(found.next().is_none(), "one entry for each name");
    sum
}

#[test]
fn every_handled_message_is_counted_however_it_comes() {
    on_shards(&[1, 2, 4], |system| {
        let clerk = system
            .block_on(system.spawn_on(last_shard(system), Clerk::default))
            .unwrap();
        let handled = |expected| {
            bounded_wait(|| sums(system, "Clerk").handled >= expected);
            assert_eq!(sums(system, "Clerk").handled, expected);
        };
        handled(0);
        // From outside; on its own shard, where it is asked at once; and from another one.
        let from = [0, last_shard(system)];
        system.block_on(async {
            clerk.file().await.unwrap();
            clerk.file().tell().await.unwrap();
        });
        handled(2);
        for shard in from {
            system.run_on(shard, move || async move {
                clerk.file().await.unwrap();
                clerk.file().tell().await.unwrap();
                clerk.think().await.unwrap();
            });
        }
        handled(8);
        system.block_on(async {
            for _ in 0..5 {
                clerk.read().tell().await.unwrap();
            }
            clerk.read().await.unwrap();
        });
        handled(14);
        // The timer's message is one too.
        system.block_on(clerk.remind().into_future()).unwrap();
        handled(16);
        // Each of a batch counts.
        let (open, gate) = oneshot::channel();
        system.block_on(async {
            clerk.hold(gate).tell().await.unwrap();
            for number in 0..4 {
                clerk.stamp(number).tell().await.unwrap();
            }
        });
        open.send(()).unwrap();
        handled(21);
        let found = sums(system, "Clerk");
        assert_eq!((found.live, found.started, found.busy_ns), (1, 1, None));
        assert_eq!((found.errors, found.failed, found.dead_letters), (0, 0, 0));
    });
}

#[test]
fn errors_failures_and_restarts_are_counted() {
    on_shards(&[1, 2, 4], |system| {
        let office = system
            .block_on(system.spawn_on(last_shard(system), || Office))
            .unwrap();
        let clerk = system.block_on(office.hire().into_future()).unwrap();
        system.block_on(async {
            clerk.sign(true).await.unwrap();
            clerk.sign(false).await.unwrap_err();
            clerk.sign(false).tell().await.unwrap();
            clerk.check(false).await.unwrap_err();
            clerk.check(true).await.unwrap();
        });
        let found = sums(system, "Clerk");
        assert_eq!((found.handled, found.errors, found.failed), (5, 3, 0));

        system.block_on(clerk.panic().into_future()).unwrap_err();
        bounded_wait(|| sums(system, "Clerk").restarted == 1);
        let found = sums(system, "Clerk");
        assert_eq!((found.live, found.started, found.failed), (1, 1, 1));

        // One that is not restarted, with what it was sent and did not come to.
        let (open, gate) = oneshot::channel();
        let loner = system.block_on(system.spawn_on(0, Clerk::default)).unwrap();
        system.block_on(async {
            loner.hold(gate).tell().await.unwrap();
            loner.panic().tell().await.unwrap();
            loner.file().tell().await.unwrap();
        });
        open.send(()).unwrap();
        system.block_on(Addr::stopped(loner));
        let found = sums(system, "Clerk");
        assert_eq!((found.live, found.started, found.failed), (1, 2, 2));
        assert_eq!((found.restarted, found.dead_letters), (1, 1));
        let text = system.metrics().to_string();
        assert!(
            text.contains(
                "Clerk: 1 of 2, 8 handled, 2 failed, 1 restarted, 3 errors, 1 dead letters\n"
            ),
            "{text}"
        );
        assert!(text.contains("Office: 1 of 1, 1 handled\n"), "{text}");
    });
}

#[test]
fn busy_time_is_that_of_handlers_without_their_waits_and_each_has_its_own() {
    for shards in [1, 2, 4] {
        bounded("counting busy time", move || {
            let system = System::builder()
                .shards(shards)
                .pin(false)
                .measure_busy_time()
                .start()
                .unwrap();
            let shard = last_shard(&system);
            let (office, clerk) = system.block_on(async {
                let office = system.spawn_on(shard, || Office).await.unwrap();
                (
                    office,
                    system.spawn_on(shard, Clerk::default).await.unwrap(),
                )
            });
            // When nothing is left to do: time is added when a handler has ended, which may be after its answer.
            let busy = |name| {
                system.block_on(system.drain());
                Duration::from_nanos(sums(&system, name).busy_ns.unwrap())
            };

            let work = Duration::from_millis(20);
            let begun = Instant::now();
            system
                .block_on(office.delegate(clerk, work).into_future())
                .unwrap();
            system.block_on(clerk.work(work).tell()).unwrap();
            assert!(busy("Clerk") >= 2 * work);
            // One after the other: time that was counted twice would be more than there was.
            assert!(busy("Clerk") + busy("Office") <= begun.elapsed());

            let (before, rest) = (busy("Clerk"), Duration::from_millis(200));
            let begun = Instant::now();
            system.block_on(clerk.rest(rest).into_future()).unwrap();
            let after = busy("Clerk");
            assert!(after > before);
            assert!(
                after - before + rest <= begun.elapsed(),
                "a wait is not work"
            );
        });
    }
}

#[test]
fn a_stuck_shard_is_named_and_its_counts_are_missing() {
    bounded("the metrics of a stuck shard", || {
        let system = System::builder()
            .shards(2)
            .pin(false)
            .runtime(|runtime| runtime.watchdog(Duration::from_secs(1000)))
            .start()
            .unwrap();
        system.block_on(system.spawn_on(1, Clerk::default)).unwrap();
        let release = block_shard(&system, 0);
        let metrics = system.metrics();
        assert!(metrics.shards[0].types.is_none());
        assert!(metrics.shards[0].stuck_in.is_some());
        assert_eq!(metrics.shards[1].types.as_ref().unwrap()[0].live, 1);
        drop(release);
        // From a shard, without blocking it.
        let handle = system.handle().clone();
        let metrics = system.run_on(1, move || async move { handle.metrics().await });
        assert_eq!(metrics.sums()[0].started, 1);
    });
}
