//! What nobody takes goes home: it is dropped on the shard that sent it.

use std::sync::mpsc;

use greenroom::prelude::*;
use greenroom::runtime::current_shard;
use greenroom_tests::{counts, hear, last_shard, on_shards};

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
