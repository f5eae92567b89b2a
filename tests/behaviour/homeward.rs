//! What nobody takes goes home: it is dropped on the shard that sent it.

use std::sync::mpsc;

use greenroom::prelude::*;
use greenroom::runtime::task::unconstrained;
use greenroom::runtime::{current_shard, yield_now};
use greenroom_tests::{PATIENCE, bounded, counts, hear, last_shard, on_shards};

/// Says where it is dropped.
struct Whence(mpsc::Sender<Option<greenroom::ShardId>>);

impl Drop for Whence {
    fn drop(&mut self) {
        self.0.send(current_shard()).ok();
    }
}

struct Taker;

#[actor]
impl Taker {
    pub(crate) fn take(&mut self, what: Whence) {
        drop(what);
    }
}

fn gone(system: &System, how: fn(Addr<Taker>)) -> Addr<Taker> {
    let taker = system
        .block_on(system.spawn_on(last_shard(system), || Taker))
        .unwrap();
    how(taker);
    system.block_on(Addr::stopped(taker));
    taker
}

#[test]
fn what_a_gone_actor_was_sent_is_dropped_by_its_senders_shard() {
    for how in [Addr::stop as fn(_), Addr::kill] {
        on_shards(&[1, 2, 4], move |system| {
            let taker = gone(system, how);
            let (dropped, drops) = mpsc::channel();
            let told = 500;
            for shard in system.shards() {
                let before = counts(system).dead_letters;
                let dropped = dropped.clone();
                let refused = system.run_on(shard, move || async move {
                    let mut refused = 0;
                    for _ in 0..told {
                        let what = Whence(dropped.clone());
                        refused += u64::from(taker.take(what).tell().await.is_err());
                    }
                    let error = taker.take(Whence(dropped)).await.unwrap_err();
                    assert!(error.is_stopped(), "{error}");
                    refused
                });
                for _ in 0..=told {
                    assert_eq!(hear(&drops), Some(shard));
                }
                let asked_elsewhere = u64::from(shard.index() != usize::from(last_shard(system)));
                let dead = counts(system).dead_letters - before;
                assert_eq!(dead, told - refused + asked_elsewhere);
            }
        });
    }
}

/// More than may wait for room on the way back, and than the links hold.
const STORM: usize = 12_000;

#[test]
fn a_storm_that_nobody_takes_comes_home_whole() {
    for link_bytes in [4096, 65_536] {
        for shards in [2, 4] {
            bounded("the storm", move || {
                let builder = System::builder().shards(shards).pin(false);
                let builder = builder.runtime(|runtime| runtime.link_bytes(link_bytes));
                let system = builder.start().unwrap();
                let taker = gone(&system, Addr::kill);
                let before = counts(&system).dead_letters;
                let mut refused = 0;
                for shard in system.shards().take(shards - 1) {
                    let (dropped, drops) = mpsc::channel();
                    refused += system.run_on(shard, move || send_storm(taker, dropped));
                    let heard: Vec<_> = (0..STORM).map(|_| hear(&drops)).collect();
                    assert!(heard.iter().all(|at| *at == Some(shard)));
                    check_end(&drops);
                }
                let sent = (STORM * (shards - 1)) as u64;
                assert_eq!(counts(&system).dead_letters - before, sent - refused);
            });
        }
    }
}

/// Four tasks send, in turns, without waiting for anything but room. Returns how many messages came back at once.
async fn send_storm(taker: Addr<Taker>, dropped: mpsc::Sender<Option<greenroom::ShardId>>) -> u64 {
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let dropped = dropped.clone();
            greenroom::runtime::spawn(async move {
                let mut refused = 0;
                for _ in 0..STORM / 4 {
                    let told = taker.take(Whence(dropped.clone())).tell().await;
                    refused += u64::from(told.is_err());
                }
                refused
            })
        })
        .collect();
    let mut refused = 0;
    for sender in senders {
        refused += sender.await.unwrap();
    }
    refused
}

#[test]
fn a_sender_that_never_listens_loses_nothing_either() {
    on_shards(&[2, 4], |system| {
        let taker = gone(system, Addr::stop);
        let (dropped, drops) = mpsc::channel();
        let sent = system.run_on(0, move || {
            unconstrained(async move {
                let (mut sent, mut spare) = (0, None);
                while sent < STORM {
                    for urgent in [false, true] {
                        // As much as there is room for in this turn, without a look at what comes back.
                        loop {
                            let what = spare.take().unwrap_or_else(|| Whence(dropped.clone()));
                            let call = taker.take(what);
                            let told = if urgent {
                                call.urgent().try_tell()
                            } else {
                                call.try_tell()
                            };
                            let Err(error) = told else {
                                sent += 1;
                                continue;
                            };
                            assert!(error.is_full(), "{error}");
                            spare = error.into_args().map(|(what,)| what);
                            break;
                        }
                    }
                    yield_now().await;
                }
                sent + usize::from(spare.is_some())
            })
        });
        let heard: Vec<_> = (0..sent).map(|_| hear(&drops)).collect();
        // If it is much faster than it empties its ring, some are dropped where they were refused.
        let homes = [0, last_shard(system)].map(|shard| Some(shard.into()));
        assert!(heard.iter().all(|at| homes.contains(at)), "on a shard");
        check_end(&drops);
    });
}

/// What was dropped held the senders: none of it is kept, and nothing was dropped twice.
#[track_caller]
fn check_end(drops: &mpsc::Receiver<Option<greenroom::ShardId>>) {
    let end = drops.recv_timeout(PATIENCE);
    assert_eq!(end, Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn what_a_thread_outside_sent_is_dropped_on_the_actors_shard() {
    on_shards(&[1, 2], |system| {
        let taker = gone(system, Addr::stop);
        let (dropped, drops) = mpsc::channel();
        let error = taker.take(Whence(dropped)).blocking().unwrap_err();
        assert!(error.is_stopped(), "{error}");
        let shard = hear(&drops).expect("on a shard");
        assert_eq!(shard.index(), usize::from(last_shard(system)));
    });
}

#[test]
fn what_comes_home_to_a_system_that_ends_is_dropped_there_or_with_it() {
    on_shards(&[2], |system| {
        let taker = gone(system, Addr::stop);
        let (dropped, drops) = mpsc::channel();
        system.run_on(0, move || async move {
            for _ in 0..100 {
                taker.take(Whence(dropped.clone())).tell().await.ok();
            }
        });
        for _ in 0..100 {
            hear(&drops);
        }
    });
}
