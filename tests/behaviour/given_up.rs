//! An ask that was given up before its handler began is skipped, and counted.

use std::time::Duration;

use futures_channel::oneshot;
use greenroom::Handle;
use greenroom::prelude::*;
use greenroom::runtime::task::unconstrained;
use greenroom_tests::{Ledger, bounded, counts, last_shard, ledger, on_shards, poll_once, settle};

/// An actor that is busy until the gate opens.
fn busy(system: &System) -> (Addr<Ledger<4096>>, oneshot::Sender<()>) {
    let ledger = ledger(system, last_shard(system));
    let (open, gate) = oneshot::channel();
    system.block_on(ledger.wait(gate).tell()).unwrap();
    (ledger, open)
}

#[test]
fn a_dropped_ask_is_skipped_and_counted() {
    on_shards(&[1, 2, 4], |system| {
        let (ledger, open) = busy(system);
        system.run_on(0, move || async move {
            ledger.note(0, 0).tell().await.unwrap();
            let mut dropped: Vec<_> = (1..=10).map(|n| ledger.note(1, n).into_future()).collect();
            for ask in &mut dropped {
                assert!(poll_once(ask).is_pending());
            }
            let mut kept = ledger.note(2, 2).into_future();
            assert!(poll_once(&mut kept).is_pending());
            drop(dropped);
            let system = Handle::current().unwrap();
            settle(&system, last_shard(&system)).await;
            drop(open);
            assert_eq!(kept.await.unwrap(), 2);
        });
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen, [(0, 0), (2, 2)]);
        assert_eq!(counts(system).skipped, 10);
        assert_eq!(counts(system).dead_letters, 0);
    });
}

#[test]
fn an_ask_of_a_thread_outside_that_was_dropped_is_skipped_and_counted() {
    on_shards(&[1, 2], |system| {
        let (ledger, open) = busy(system);
        let mut dropped = ledger.note(1, 1).into_future();
        assert!(poll_once(&mut dropped).is_pending());
        system.block_on(settle(system, last_shard(system)));
        let mut kept = ledger.note(2, 2).into_future();
        assert!(poll_once(&mut kept).is_pending());
        drop(dropped);
        system.block_on(settle(system, last_shard(system)));
        drop(open);
        assert_eq!(system.block_on(kept).unwrap(), 2);
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen, [(2, 2)]);
        assert_eq!(counts(system).skipped, 1);
    });
}

#[test]
fn an_ask_whose_time_is_over_is_skipped_and_counted() {
    on_shards(&[1, 2, 4], |system| {
        let (ledger, open) = busy(system);
        let ask = move || ledger.note(1, 1).timeout(Duration::from_millis(2));
        assert!(system.run_on(0, ask).unwrap_err().is_timeout());
        assert!(system.block_on(ask()).unwrap_err().is_timeout());
        system.block_on(settle(system, last_shard(system)));
        drop(open);
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen, []);
        assert_eq!(counts(system).skipped, 2);
    });
}

#[test]
fn an_ask_that_is_dropped_while_its_handler_runs_is_not_skipped() {
    on_shards(&[1, 2], |system| {
        let ledger: Addr<Ledger<4>> = ledger(system, last_shard(system));
        let (open, gate) = oneshot::channel();
        system.run_on(0, move || async move {
            let mut asked = ledger.wait(gate).into_future();
            assert!(poll_once(&mut asked).is_pending());
            let system = Handle::current().unwrap();
            settle(&system, last_shard(&system)).await;
            drop(asked);
            drop(open);
            assert_eq!(ledger.note(0, 0).await.unwrap(), 0);
        });
        assert_eq!(counts(system).skipped, 0);
    });
}

#[test]
fn thousands_of_dropped_asks_are_skipped_each_once() {
    // Links of the usual size: an ask that waits for a place in a full one is not sent, and there is nothing to skip.
    for shards in [1, 2] {
        bounded("dropping asks", move || {
            let system = System::builder().shards(shards).pin(false).start().unwrap();
            drop_thousands(&system);
        });
    }
}

fn drop_thousands(system: &System) {
    let (ledger, open) = busy(system);
    // Unconstrained: a task that has spent its budget sends nothing.
    let asks = async move {
        let mut accepted = 0;
        for round in 0..100 {
            let mut asks: Vec<_> = (0..20)
                .map(|n| ledger.note(round, n).into_future())
                .collect();
            for ask in &mut asks {
                assert!(poll_once(ask).is_pending());
            }
            accepted += asks.len();
            drop(asks);
            let system = Handle::current().unwrap();
            settle(&system, last_shard(&system)).await;
            ledger.note(round, 1000).tell().await.unwrap();
        }
        // From this shard: what the others send takes other ways, and may overtake the last one.
        let system = Handle::current().unwrap();
        settle(&system, last_shard(&system)).await;
        accepted
    };
    let asked: usize = system.run_on(0, move || unconstrained(asks));
    drop(open);
    let seen = system.block_on(ledger.seen().into_future()).unwrap();
    let kept: Vec<_> = (0..100).map(|round| (round, 1000)).collect();
    assert_eq!(seen, kept);
    assert_eq!(counts(system).skipped, asked as u64);
}

#[test]
fn skipped_arguments_are_dropped_on_the_actors_shard() {
    on_shards(&[1, 2], |system| {
        let (open, gate) = oneshot::channel();
        let keeper = system
            .block_on(system.spawn_on(last_shard(system), || Keeper))
            .unwrap();
        system.block_on(keeper.wait(gate).tell()).unwrap();
        let (dropped, drops) = std::sync::mpsc::channel();
        system.run_on(0, move || async move {
            let mut ask = keeper.take(Whence(dropped)).into_future();
            assert!(poll_once(&mut ask).is_pending());
        });
        system.block_on(settle(system, last_shard(system)));
        drop(open);
        let shard = greenroom_tests::hear(&drops).expect("on a shard");
        assert_eq!(shard.index(), usize::from(last_shard(system)));
    });
}

/// Says where it is dropped.
struct Whence(std::sync::mpsc::Sender<Option<greenroom::ShardId>>);

impl Drop for Whence {
    fn drop(&mut self) {
        self.0.send(greenroom::runtime::current_shard()).ok();
    }
}

struct Keeper;

#[actor]
impl Keeper {
    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn take(&mut self, what: Whence) {
        drop(what);
        panic!("it was given up");
    }
}
