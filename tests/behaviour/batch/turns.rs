//! Batches among all else that a mailbox and its actor do: lanes, given-up asks, turns, restarts, limits, cycles.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::join_all;
use greenroom::prelude::*;
use greenroom::runtime::{spawn, yield_now};
use greenroom::{Batch, Restart, ToldError};
use greenroom_tests::{bounded, counts, hear, last_shard, on_shards, poll_once, settle};

use super::{Entry, at_each_place, busy};

#[test]
fn urgent_messages_go_first_and_may_be_of_the_same_batch() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        let entries = system.run_on(0, move || async move {
            let open = busy(journal, &handle, shard).await;
            journal.line(0).tell().await.unwrap();
            journal.line(1).tell().await.unwrap();
            journal.line(10).urgent().tell().await.unwrap();
            journal.line(11).urgent().tell().await.unwrap();
            settle(&handle, shard).await;
            open.send(()).unwrap();
            let mut entries = journal.entries().await.unwrap();

            let open = busy(journal, &handle, shard).await;
            journal.line(2).tell().await.unwrap();
            journal.line(12).urgent().tell().await.unwrap();
            journal.mark(13).urgent().tell().await.unwrap();
            journal.line(3).tell().await.unwrap();
            settle(&handle, shard).await;
            open.send(()).unwrap();
            entries.push(Entry::Marker(0));
            entries.extend(journal.entries().await.unwrap().split_off(1));
            entries
        });
        assert_eq!(
            entries,
            [
                Entry::Lines(vec![10, 11, 0, 1]),
                Entry::Marker(0),
                Entry::Lines(vec![12]),
                Entry::Marker(13),
                Entry::Lines(vec![2, 3]),
            ]
        );
    });
}

#[test]
fn asks_that_were_given_up_are_no_part_of_a_batch() {
    at_each_place(|system, journal, shard| {
        let handle = system.handle().clone();
        let before = counts(system).skipped;
        system.run_on(0, move || async move {
            let open = busy(journal, &handle, shard).await;
            let mut asks: Vec<_> = (0..6)
                .map(|line| journal.line(line).into_future())
                .collect();
            for ask in &mut asks {
                assert!(poll_once(ask).is_pending());
            }
            // The first and the last, and two that stand together.
            for place in [5, 3, 2, 0] {
                drop(asks.remove(place));
            }
            settle(&handle, shard).await;
            open.send(()).unwrap();
            for answer in join_all(asks).await {
                assert_eq!(answer.unwrap(), 2);
            }
            let entries = journal.entries().await.unwrap();
            assert_eq!(entries, [Entry::Lines(vec![1, 4])]);
        });
        assert_eq!(counts(system).skipped - before, 4);
    });
}

/// Notes in which turn of its shard each batch was handled.
#[derive(Default)]
struct Greedy {
    turns: std::rc::Rc<std::cell::Cell<u32>>,
    seen: Vec<(usize, u32)>,
}

#[actor(mailbox = 256)]
impl Greedy {
    /// Counts the turns of its shard until it is dropped.
    pub(crate) fn count_turns(&mut self) {
        let turns = self.turns.clone();
        drop(spawn(async move {
            while std::rc::Rc::strong_count(&turns) > 1 {
                turns.set(turns.get() + 1);
                yield_now().await;
            }
        }));
    }

    #[message(batch = 100)]
    pub(crate) async fn swallow(&mut self, batch: Batch<()>) {
        self.seen.push((batch.len(), self.turns.get()));
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn seen(&self) -> Vec<(usize, u32)> {
        self.seen.clone()
    }
}

#[test]
fn each_message_of_a_batch_counts_when_others_are_to_have_their_turn() {
    on_shards(&[1, 2], |system| {
        let greedy = system
            .block_on(system.spawn_on(0, Greedy::default))
            .unwrap();
        let seen = system.run_on(0, move || async move {
            greedy.count_turns().await.unwrap();
            let (open, gate) = oneshot::channel();
            greedy.wait(gate).tell().await.unwrap();
            for _ in 0..200 {
                greedy.swallow().tell().await.unwrap();
            }
            open.send(()).unwrap();
            greedy.seen().await.unwrap()
        });
        let [(100, first), (100, second)] = seen[..] else {
            panic!("{seen:?}")
        };
        assert!(
            first < second,
            "the counter had its turn between the batches"
        );
    });
}

/// Fails at batches with a zero in them.
struct Fragile {
    log: mpsc::Sender<(u32, Vec<u32>)>,
}

#[actor(mailbox = 64)]
impl Fragile {
    #[message(batch = 3)]
    pub(crate) fn take(&mut self, numbers: Batch<u32>, ctx: &mut Ctx<Self>) -> usize {
        let numbers: Vec<u32> = numbers.into_iter().collect();
        let count = numbers.len();
        let is_bad = numbers.contains(&0);
        self.log.send((ctx.restarts(), numbers)).unwrap();
        assert!(!is_bad, "a zero");
        count
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }
}

struct Parent(mpsc::Sender<(u32, Vec<u32>)>);

#[actor]
impl Parent {
    pub(crate) async fn bear(&mut self, shard: u16, ctx: &mut Ctx<Self>) -> Addr<Fragile> {
        let log = self.0.clone();
        let child = ctx.spawn_child(move || Fragile { log: log.clone() });
        child
            .restart(Restart::OnFailure)
            .backoff(Duration::from_millis(1), Duration::from_millis(1))
            .on(shard)
            .await
            .unwrap()
    }
}

#[test]
fn a_restart_loses_the_batch_that_failed_and_nothing_behind_it() {
    on_shards(&[1, 2], |system| {
        let (log, heard) = mpsc::channel();
        let parent = system
            .block_on(system.spawn_on(0, move || Parent(log)))
            .unwrap();
        let shard = last_shard(system);
        let child = system.block_on(parent.bear(shard).into_future()).unwrap();
        let handle = system.handle().clone();
        system.run_on(0, move || async move {
            let (open, gate) = oneshot::channel();
            child.wait(gate).tell().await.unwrap();
            settle(&handle, shard).await;
            let mut asks: Vec<_> = [1, 0, 2, 3, 4]
                .into_iter()
                .map(|number| child.take(number).into_future())
                .collect();
            for ask in &mut asks {
                assert!(poll_once(ask).is_pending());
            }
            open.send(()).unwrap();
            let answers = join_all(asks).await;
            for answer in &answers[..3] {
                let error = answer.as_ref().unwrap_err();
                assert!(error.panic().unwrap().text().starts_with("a zero"));
            }
            assert!(answers[3..].iter().all(|answer| matches!(answer, Ok(2))));
        });
        assert_eq!(hear(&heard), (0, vec![1, 0, 2]));
        assert_eq!(hear(&heard), (1, vec![3, 4]));
    });
}

/// Hears of errors that nobody waits for.
#[derive(Default)]
struct Complaints(Vec<String>);

#[actor]
impl Complaints {
    #[message(batch)]
    pub(crate) fn refuse(&mut self, batch: Batch<u32>) -> Result<(), String> {
        Err(format!("{} in all", batch.len()))
    }

    #[on(error)]
    fn heard(&mut self, error: ToldError) {
        assert_eq!(error.method(), "refuse");
        self.0.push(error.to_string());
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn heard_so_far(&self) -> Vec<String> {
        self.0.clone()
    }
}

#[test]
fn the_error_of_a_batch_is_heard_once_for_each_that_was_told() {
    on_shards(&[1], |system| {
        let complaints = system
            .block_on(system.spawn_on(0, Complaints::default))
            .unwrap();
        system.run_on(0, move || async move {
            let (open, gate) = oneshot::channel();
            complaints.wait(gate).tell().await.unwrap();
            complaints.refuse(1).tell().await.unwrap();
            let mut asked = complaints.refuse(2).into_future();
            assert!(poll_once(&mut asked).is_pending());
            complaints.refuse(3).tell().await.unwrap();
            open.send(()).unwrap();
            let error = asked.await.unwrap_err();
            assert_eq!(error.into_handler().unwrap(), "3 in all");
            let heard = complaints.heard_so_far().await.unwrap();
            assert_eq!(heard.len(), 2, "{heard:?}");
            assert!(
                heard.iter().all(|text| text.contains("3 in all")),
                "{heard:?}"
            );
        });
        assert_eq!(counts(system).told_errors, 2);
    });
}

/// Asks for each batch how much time there is.
struct Hurried(Addr<Clock>);

struct Clock;

#[actor]
impl Clock {
    pub(crate) fn is_limited(&mut self, reply: Reply<bool>) {
        let is_limited = reply.deadline().is_some();
        reply.send(is_limited);
    }
}

#[actor]
impl Hurried {
    #[message(batch)]
    pub(crate) async fn is_hurried(&mut self, batch: Batch<()>) -> (bool, bool) {
        drop(batch);
        let at_once = self.0.is_limited().await.unwrap();
        yield_now().await;
        (at_once, self.0.is_limited().await.unwrap())
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }
}

#[test]
fn a_batch_of_several_inherits_the_limit_of_none() {
    bounded("two systems", || {
        for shards in [1, 2] {
            let builder = System::builder().shards(shards).pin(false);
            let system = builder.ask_deadline(None).start().unwrap();
            let last = last_shard(&system);
            let clock = system.block_on(system.spawn_on(last, || Clock)).unwrap();
            let hurried = system
                .block_on(system.spawn_on(0, move || Hurried(clock)))
                .unwrap();
            system.run_on(0, move || async move {
                let ask = || hurried.is_hurried().timeout(Duration::from_secs(600));
                assert_eq!(ask().await.unwrap(), (true, true), "a batch of one");
                let (open, gate) = oneshot::channel();
                hurried.wait(gate).tell().await.unwrap();
                let mut asks = [ask().into_future(), ask().into_future()];
                for ask in &mut asks {
                    assert!(poll_once(ask).is_pending());
                }
                open.send(()).unwrap();
                for answer in join_all(asks).await {
                    assert_eq!(answer.unwrap(), (false, false));
                }
                assert_eq!(ask().await.unwrap(), (true, true), "the next one");
            });
        }
    });
}

/// Waits for who asks it, if that one says so.
struct Tangle;

#[actor]
impl Tangle {
    #[message(batch)]
    pub(crate) async fn pull(&mut self, ends: Batch<Option<Addr<Thread>>>) -> bool {
        let mut is_cut = false;
        for end in ends.into_iter().flatten() {
            is_cut |= is_cycle(end.nothing().no_timeout().await);
        }
        is_cut
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }
}

struct Thread;

#[actor]
impl Thread {
    pub(crate) async fn tie(&mut self, tangle: Addr<Tangle>) -> bool {
        is_cycle(tangle.pull(None).no_timeout().await)
    }

    pub(crate) fn nothing(&mut self) {}
}

fn is_cycle<T>(answer: Result<T, CallError>) -> bool {
    match answer {
        Ok(_) => false,
        Err(error) => {
            assert!(error.cycle().is_some(), "{error}");
            true
        }
    }
}

#[test]
fn a_cycle_through_any_message_of_a_batch_is_found() {
    on_shards(&[1, 2], |system| {
        let shard = last_shard(system);
        let tangle = system.block_on(system.spawn_on(0, || Tangle)).unwrap();
        let thread = system.block_on(system.spawn_on(shard, || Thread)).unwrap();
        let handle = system.handle().clone();
        system.run_on(0, move || async move {
            let (open, gate) = oneshot::channel();
            tangle.wait(gate).tell().await.unwrap();
            let first = spawn(tangle.pull(Some(thread)).no_timeout().into_future());
            settle(&handle, 0).await;
            let second = spawn(thread.tie(tangle).no_timeout().into_future());
            settle(&handle, 0).await;
            settle(&handle, shard).await;
            open.send(()).unwrap();
            let found = [first.await.unwrap(), second.await.unwrap()];
            let found = found.map(Result::unwrap);
            assert_eq!(found.iter().filter(|found| **found).count(), 1, "{found:?}");
        });
    });
}
