//! Many messages with one call: the same order, bound and accounting as one by one.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::{spawn, yield_now};
use greenroom::{Recipient, tell_many};
use greenroom_tests::{
    Ledger, block_shard, bounded, counts, last_shard, ledger, on_shards, poll_once, settle, start,
};

/// What a ledger has seen of what shard 0 has sent before.
fn seen<const N: usize>(system: &System, ledger: Addr<Ledger<N>>) -> Vec<(u32, u64)> {
    system.run_on(0, move || async move { ledger.seen().await.unwrap() })
}

fn numbers(seen: &[(u32, u64)], sender: u32) -> Vec<u64> {
    let of_sender = seen.iter().filter(|(from, _)| *from == sender);
    of_sender.map(|(_, number)| *number).collect()
}

#[track_caller]
fn all_in_order(seen: &[(u32, u64)], sender: u32, count: u64) {
    let numbers = numbers(seen, sender);
    assert_eq!(numbers.len() as u64, count, "of sender {sender}");
    let wrong = numbers
        .into_iter()
        .zip(0..)
        .find(|(seen, sent)| seen != sent);
    assert_eq!(wrong, None, "of sender {sender}");
}

fn arrive_in_order<const N: usize>(system: &System) {
    const COUNT: u64 = 3000;
    for shard in [0, last_shard(system)] {
        let ledger: Addr<Ledger<N>> = ledger(system, shard);
        let sent = system.run_on(0, move || async move {
            let sender = |sender| async move {
                let calls = (0..COUNT).map(|number| ledger.note(sender, number));
                tell_many(calls).await.unwrap()
            };
            let rivals: Vec<_> = (1..4).map(|number| spawn(sender(number))).collect();
            let mut sent = sender(0).await;
            for rival in rivals {
                sent += rival.await.unwrap();
            }
            sent
        });
        assert_eq!(sent as u64, 4 * COUNT);
        let seen = seen(system, ledger);
        for sender in 0..4 {
            all_in_order(&seen, sender, COUNT);
        }
    }
}

#[test]
fn what_is_told_in_bulk_arrives_in_order_beside_other_senders() {
    on_shards(&[1, 2], |system| {
        arrive_in_order::<1>(system);
        arrive_in_order::<3>(system);
        arrive_in_order::<256>(system);
    });
}

#[test]
fn what_is_told_in_bulk_arrives_in_order_from_outside() {
    on_shards(&[1, 2], |system| {
        let ledger: Addr<Ledger<3>> = ledger(system, last_shard(system));
        let sent = system.block_on(tell_many((0..1000).map(|number| ledger.note(0, number))));
        assert_eq!(sent.unwrap(), 1000);
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        all_in_order(&seen, 0, 1000);
    });
}

#[test]
fn a_bulk_waits_for_room_and_knows_what_was_sent_when_it_is_given_up() {
    on_shards(&[1, 2], |system| {
        for shard in [0, last_shard(system)] {
            let ledger: Addr<Ledger<4>> = ledger(system, shard);
            let (open, gate) = oneshot::channel();
            let handle = system.handle().clone();
            let (sent, rest) = system.run_on(0, move || async move {
                ledger.wait(gate).tell().await.unwrap();
                settle(&handle, shard).await;
                let mut bulk = tell_many((0..10_000).map(|number| ledger.note(0, number)));
                let mut polls = 0;
                let mut before = usize::MAX;
                while before != bulk.sent() {
                    before = bulk.sent();
                    assert!(poll_once(&mut bulk).is_pending());
                    settle(&handle, shard).await;
                    polls += 1;
                }
                assert!(polls < 100, "there is an end to what it accepts");
                let sent = bulk.sent();
                let rest: Vec<_> = bulk.into_rest().collect();
                open.send(()).unwrap();
                // What is told after it finds no stale place in the line.
                ledger.note(1, 0).tell().await.unwrap();
                let count = rest.len();
                tell_many(rest).await.unwrap();
                (sent, count)
            });
            assert_eq!(sent + rest, 10_000);
            if shard == 0 {
                assert_eq!(sent, 4);
            }
            let seen = seen(system, ledger);
            all_in_order(&seen, 0, 10_000);
            assert_eq!(seen.iter().position(|(from, _)| *from == 1), Some(sent));
        }
    });
}

#[test]
fn a_bulk_that_is_dropped_sends_nothing_more_and_leaves_the_line() {
    on_shards(&[1, 2], |system| {
        for shard in [0, last_shard(system)] {
            let ledger: Addr<Ledger<1>> = ledger(system, shard);
            let (open, gate) = oneshot::channel();
            let handle = system.handle().clone();
            let (sent, taken) = system.run_on(0, move || async move {
                ledger.wait(gate).tell().await.unwrap();
                settle(&handle, shard).await;
                let taken = AtomicUsize::new(0);
                let mut calls = (0..10_000).map(|number| {
                    taken.fetch_add(1, Ordering::Relaxed);
                    ledger.note(0, number)
                });
                let mut bulk = tell_many(&mut calls);
                for _ in 0..5 {
                    assert!(poll_once(&mut bulk).is_pending());
                    settle(&handle, shard).await;
                }
                let sent = bulk.sent();
                drop(bulk);
                open.send(()).unwrap();
                ledger.note(1, 0).tell().await.unwrap();
                (sent, taken.load(Ordering::Relaxed))
            });
            assert_eq!(taken, sent + 1, "one was in its hands");
            let seen = seen(system, ledger);
            assert_eq!(numbers(&seen, 0).len(), sent);
            assert_eq!(numbers(&seen, 1), [0]);
        }
    });
}

#[test]
fn a_bulk_to_an_actor_that_has_stopped_says_how_far_it_came() {
    on_shards(&[1, 2], |system| {
        let near: Addr<Ledger<4>> = ledger(system, 0);
        system.run_on(0, move || async move {
            let mut calls = (0..10).map(|number| {
                if number == 3 {
                    Addr::stop(near);
                }
                near.note(0, number)
            });
            let error = tell_many(&mut calls).await.unwrap_err();
            assert!(error.is_stopped() && !error.is_full());
            assert_eq!(error.sent(), 3);
            assert_eq!(
                error.to_string(),
                "Ledger::note on shard 0 was not sent: the actor has stopped (messages sent before it: 3)"
            );
            assert_eq!(error.into_refused().into_args(), Some((0, 3)));
            assert_eq!(calls.count(), 6, "the others are still there");
        });
        // From outside the end is found out on arrival.
        let error = system.block_on(tell_many([near.note(0, 0)])).unwrap_err();
        assert!(error.is_stopped(), "{error}");
        assert_eq!(counts(system).dead_letters, 1);
    });
}

#[test]
fn a_bulk_to_another_shard_counts_what_comes_too_late_as_dead_letters() {
    on_shards(&[2], |system| {
        let far: Addr<Ledger<4>> = ledger(system, 1);
        Addr::stop(far);
        system.block_on(Addr::stopped(far));
        let sent = system.run_on(0, move || async move {
            tell_many((0..100).map(|number| far.note(0, number))).await
        });
        assert_eq!(sent.unwrap(), 100);
        while counts(system).dead_letters < 100 {}
        assert_eq!(counts(system).dead_letters, 100);
    });
}

#[test]
fn calls_to_several_actors_may_stand_in_one_bulk() {
    on_shards(&[1, 2], |system| {
        let ledgers: Vec<Addr<Ledger<2>>> = (0..4)
            .map(|number| ledger(system, number % (last_shard(system) + 1)))
            .collect();
        let all = ledgers.clone();
        system.run_on(0, move || async move {
            let calls = (0..400_u64).map(|number| {
                let to = usize::try_from(number / 3 % 4).unwrap();
                all[to].note(0, number)
            });
            assert_eq!(tell_many(calls).await.unwrap(), 400);
        });
        let mut all = Vec::new();
        for ledger in ledgers {
            let numbers = numbers(&seen(system, ledger), 0);
            assert!(numbers.is_sorted());
            all.extend(numbers);
        }
        all.sort_unstable();
        assert_eq!(all, (0..400).collect::<Vec<_>>());
    });
}

#[test]
fn the_iterator_of_a_bulk_may_send_and_panic() {
    on_shards(&[1, 2], |system| {
        for shard in [0, last_shard(system)] {
            let ledger: Addr<Ledger<8>> = ledger(system, shard);
            let bulk = system.run_on(0, move || async move {
                spawn(async move {
                    let calls = (0..5).map(|number| {
                        assert!(number < 3, "on purpose");
                        ledger.note(1, number).try_tell().unwrap();
                        ledger.note(0, number)
                    });
                    tell_many(calls).await
                })
                .await
            });
            assert!(bulk.is_err());
            let seen = seen(system, ledger);
            assert_eq!(seen, [(1, 0), (0, 0), (1, 1), (0, 1), (1, 2), (0, 2)]);
        }
    });
}

#[test]
fn a_bulk_lets_other_tasks_have_their_turn() {
    on_shards(&[2], |system| {
        let far: Addr<Ledger<256>> = ledger(system, 1);
        system.run_on(0, move || async move {
            let stop = Arc::new(AtomicUsize::new(0));
            let stopper = stop.clone();
            let bulk = spawn(async move {
                let calls = (0..).map_while(|number| {
                    let goes_on = stop.load(Ordering::Relaxed) == 0;
                    goes_on.then(|| far.note(0, number))
                });
                tell_many(calls).await.unwrap()
            });
            for _ in 0..3 {
                yield_now().await;
            }
            stopper.store(1, Ordering::Relaxed);
            assert!(bulk.await.unwrap() > 0);
        });
    });
}

struct Feeder;

#[actor(mailbox = 4)]
impl Feeder {
    pub(crate) fn take(&mut self, _: u32) {}

    pub(crate) async fn feed_itself(&mut self, ctx: &mut Ctx<Self>) -> (usize, bool) {
        let me = ctx.addr();
        let error = tell_many((0..10).map(|number| me.take(number)))
            .await
            .unwrap_err();
        (error.sent(), error.is_full())
    }
}

#[test]
fn an_actor_that_tells_itself_more_than_it_can_hold_is_refused() {
    on_shards(&[1], |system| {
        let feeder = system.block_on(system.spawn_on(0, || Feeder)).unwrap();
        let fed = system.block_on(feeder.feed_itself().into_future()).unwrap();
        assert_eq!(fed, (4, true));
    });
}

#[test]
fn what_a_thread_outside_has_handed_over_stays_in_front_of_what_it_sends_next() {
    on_shards(&[1, 2], |system| {
        let ledger: Addr<Ledger<2>> = ledger(system, last_shard(system));
        let (open, gate) = oneshot::channel();
        system.block_on(ledger.wait(gate).tell()).unwrap();
        let mut bulk = tell_many((0..1000).map(|number| ledger.note(0, number)));
        assert!(poll_once(&mut bulk).is_pending());
        let sent = bulk.sent();
        assert_eq!(sent, 64);
        let rest = bulk.into_rest().count();
        assert_eq!(sent + rest, 1000);
        let mut after = ledger.note(1, 0).tell();
        assert!(poll_once(&mut after).is_pending());
        open.send(()).unwrap();
        system.block_on(after).unwrap();
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        all_in_order(&seen, 0, 64);
        assert_eq!(seen.last(), Some(&(1, 0)));
    });
}

#[test]
fn a_local_handle_tells_in_bulk_too() {
    on_shards(&[1], |system| {
        let ledger: Addr<Ledger<16>> = ledger(system, 0);
        system.run_on(0, move || async move {
            let ledger = Addr::local(ledger).expect("it lives here");
            assert_eq!(
                tell_many((0..100).map(|number| ledger.note(0, number)))
                    .await
                    .unwrap(),
                100
            );
            assert_eq!(ledger.seen().await.unwrap().len(), 100);
        });
    });
}

#[test]
fn a_bulk_without_calls_is_done_at_once() {
    on_shards(&[1], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 0);
        let none = (0..0).map(|number| ledger.note(0, number));
        assert!(matches!(
            poll_once(&mut tell_many(none)),
            Poll::Ready(Ok(0))
        ));
    });
}

#[test]
fn a_bulk_to_a_system_that_is_gone_is_refused() {
    bounded("a bulk to nobody", || {
        let system = start(1);
        let ledger: Addr<Ledger<1>> = ledger(&system, 0);
        drop(system);
        let other = start(1);
        let calls = (0..3).map(move |number| ledger.note(0, number));
        let error = other.block_on(tell_many(calls)).unwrap_err();
        assert!(error.is_stopped(), "{error}");
    });
}

// Recipients.

#[derive(Default)]
struct Names {
    seen: Vec<String>,
}

#[actor(mailbox = 2)]
impl Names {
    pub(crate) fn note(&mut self, name: String) {
        self.seen.push(name);
    }

    pub(crate) fn tagged(&mut self, tag: u8, name: String) {
        self.seen.push(format!("{tag}:{name}"));
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.clone()
    }
}

fn names_of(addr: Addr<Names>) -> Recipient<String> {
    Recipient::new(addr, |names, name| names.note(name))
}

#[test]
fn recipients_of_different_actors_stand_in_one_list() {
    on_shards(&[1, 2], |system| {
        let names = system.block_on(system.spawn_on(0, Names::default)).unwrap();
        let ledger: Addr<Ledger<4>> = ledger(system, last_shard(system));
        let tag = 7;
        let all = vec![
            names_of(names),
            Recipient::new(names, move |names, name| names.tagged(tag, name)),
            Recipient::new(ledger, |ledger, name: String| {
                ledger.note(0, name.len() as u64)
            }),
        ];
        let here = all.clone();
        system.run_on(0, move || async move {
            for to in &here {
                to.tell("from a shard".to_owned()).await.unwrap();
            }
            // All have arrived before others send.
            ledger.seen().await.unwrap();
        });
        for to in &all {
            system.block_on(to.tell("outside".to_owned())).unwrap();
        }
        assert_eq!(
            system.block_on(names.seen().into_future()).unwrap(),
            ["from a shard", "7:from a shard", "outside", "7:outside"]
        );
        let seen = seen(system, ledger);
        assert_eq!(seen, [(0, 12), (0, 7)]);
    });
}

#[test]
fn a_recipient_gives_back_what_is_refused_and_waits_for_room() {
    on_shards(&[1, 2], |system| {
        let names = system.block_on(system.spawn_on(0, Names::default)).unwrap();
        system.run_on(0, move || async move {
            let to = names_of(names);
            to.try_tell("one".to_owned()).unwrap();
            to.try_tell("two".to_owned()).unwrap();
            let error = to.try_tell("three".to_owned()).unwrap_err();
            assert!(error.is_full());
            let three = error.into_args().expect("it comes back");
            let mut telling = to.tell(three);
            assert!(poll_once(&mut telling).is_pending());
            telling.await.unwrap();
            let tagged = Recipient::new(names, |names, name| names.tagged(0, name));
            names.seen().await.unwrap();
            tagged.try_tell("four".to_owned()).unwrap();
            tagged.try_tell("five".to_owned()).unwrap();
            let error = tagged.try_tell("six".to_owned()).unwrap_err();
            assert_eq!(
                error.into_args(),
                None,
                "it was made part of something else"
            );
            assert_eq!(names.seen().await.unwrap().len(), 5);
            Addr::stop(names);
            Addr::stopped(names).await;
            let error = to.tell("late".to_owned()).await.unwrap_err();
            assert!(error.is_stopped());
            assert_eq!(error.into_args().as_deref(), Some("late"));
        });
    });
}

#[test]
fn a_message_of_a_recipient_that_is_given_up_is_not_sent() {
    on_shards(&[1], |system| {
        let names = system.block_on(system.spawn_on(0, Names::default)).unwrap();
        system.run_on(0, move || async move {
            let to = names_of(names);
            to.try_tell("one".to_owned()).unwrap();
            to.try_tell("two".to_owned()).unwrap();
            let mut telling = to.tell("three".to_owned());
            assert!(poll_once(&mut telling).is_pending());
            drop(telling);
            drop(to.tell("four".to_owned()));
            assert_eq!(names.seen().await.unwrap(), ["one", "two"]);
        });
    });
}

#[test]
fn recipients_are_equal_when_they_do_the_same() {
    on_shards(&[1], |system| {
        let one = system.block_on(system.spawn_on(0, Names::default)).unwrap();
        let other = system.block_on(system.spawn_on(0, Names::default)).unwrap();
        assert_eq!(names_of(one), names_of(one));
        assert_ne!(names_of(one), names_of(other));
        let tagged = |tag| Recipient::new(one, move |names, name| names.tagged(tag, name));
        let first = tagged(1);
        assert_ne!(first, tagged(2), "what they capture differs");
        assert_ne!(first, tagged(1), "nobody can tell whether it differs");
        assert_eq!(first, first.clone());
        assert_ne!(names_of(one), first);
        let set: HashSet<_> = [
            names_of(one),
            names_of(one),
            names_of(other),
            first.clone(),
            first,
        ]
        .into_iter()
        .collect();
        assert_eq!(set.len(), 3);
        assert!(format!("{:?}", names_of(one)).starts_with("Recipient(Names("));
    });
}

#[test]
fn a_bulk_to_a_shard_that_is_held_up_waits_for_it() {
    on_shards(&[2], |system| {
        let far: Addr<Ledger<8>> = ledger(system, 1);
        let release = block_shard(system, 1);
        let handle = system.handle().clone();
        let bulk = system.run_on(0, move || async move {
            let mut bulk = tell_many((0..5000).map(|number| far.note(0, number)));
            for _ in 0..10 {
                assert!(poll_once(&mut bulk).is_pending());
                settle(&handle, 0).await;
            }
            let sent = bulk.sent();
            drop(release);
            (sent, bulk.await.unwrap())
        });
        assert!(
            bulk.0 <= 4096 / 16,
            "no more than the link holds: {}",
            bulk.0
        );
        assert_eq!(bulk.1, 5000);
        let seen = seen(system, far);
        all_in_order(&seen, 0, 5000);
    });
}
