//! Instances of keys: how they start and end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::join_all;
use greenroom::HandlerRan;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom_tests::{
    PATIENCE, bounded, bounded_wait, counts, hear, last_shard, on_shards, start,
};

use super::{ALL, Account, World, accounts, key_on};

#[test]
fn the_first_message_starts_an_instance_on_the_shard_of_its_key() {
    on_shards(ALL, |system| {
        let world = Arc::new(World::default());
        let accounts = accounts(system, &world);
        for key in 0..40 {
            assert_eq!(world.made() as u64, key);
            let there = system
                .block_on(accounts.at(&key).shard().into_future())
                .unwrap();
            assert_eq!(there, accounts.shard_of(&key));
            for asker in system.shards() {
                let asked = accounts.clone();
                let again =
                    system.run_on(asker, move || async move { asked.at(&key).shard().await });
                assert_eq!(again.unwrap(), there);
            }
        }
        assert_eq!(accounts.live(), 40);
        assert_eq!(world.made(), 40);
    });
}

#[test]
fn one_that_is_killed_or_panics_is_followed_by_another_at_the_next_message() {
    on_shards(ALL, |system| {
        let world = Arc::new(World::default());
        let accounts = accounts(system, &world);
        let key = key_on(&accounts, last_shard(system));
        let at = accounts.at(&key);
        let error = system.block_on(at.fail().into_future()).unwrap_err();
        assert_eq!(error.panic().unwrap().text(), "as told");
        system.block_on(at.note(0, 1).into_future()).unwrap();
        assert_eq!(world.made(), 2);
        system.block_on(at.kill_self().tell()).unwrap();
        system.block_on(at.note(0, 2).into_future()).unwrap();
        assert_eq!(world.made(), 3);
        assert_eq!(world.seen_by(key), [(0, 1), (0, 2)]);
        assert_eq!((accounts.live(), counts(system).panics), (1, 1));
    });
}

#[test]
fn askers_hear_why_an_instance_does_not_start_and_the_next_message_tries_again() {
    on_shards(ALL, |system| {
        let world = Arc::new(World::default());
        let fails = Arc::new(AtomicBool::new(true));
        let (made_in, failing) = (world.clone(), fails.clone());
        let starting = system.keyed_with(async move |key: &u64| {
            yield_now().await;
            match key % 3 {
                _ if !failing.load(Ordering::SeqCst) => Ok(Account::new(*key, &made_in)),
                0 => panic!("no such key: {key}"),
                _ => Err(format!("the disk of {key} is broken")),
            }
        });
        let accounts = system.block_on(starting.start()).unwrap();
        for key in 0..6_u64 {
            let asked: Vec<_> = system
                .shards()
                .map(|shard| {
                    let accounts = accounts.clone();
                    system.runtime().spawn_on(shard, move || async move {
                        let asks =
                            (0..3).map(|number| accounts.at(&key).note(0, number).into_future());
                        join_all(asks).await
                    })
                })
                .collect();
            let cause = match key % 3 {
                0 => format!("it panicked: no such key: {key}"),
                _ => format!("the disk of {key} is broken"),
            };
            for asked in asked {
                for answer in system.block_on(asked).unwrap() {
                    let error = answer.unwrap_err();
                    assert!(error.is_not_started() && !error.is_stopped(), "{error}");
                    assert_eq!(error.handler_ran(), HandlerRan::No);
                    assert!(error.to_string().contains(&cause), "{error}");
                    assert!(error.to_string().contains("Account::note"), "{error}");
                }
            }
            let outside = system.block_on(accounts.at(&key).note(0, 1).into_future());
            assert!(outside.unwrap_err().to_string().contains(&cause));
        }
        bounded_wait(|| accounts.live() == 0);
        fails.store(false, Ordering::SeqCst);
        system
            .block_on(accounts.at(&0).note(0, 1).into_future())
            .unwrap();
        assert_eq!((accounts.live(), world.made()), (1, 1));
    });
}

/// Does not want to start.
struct Unwilling;

#[actor]
impl Unwilling {
    #[on(started)]
    fn started(&mut self) -> Result<(), &'static str> {
        Err("not in the mood")
    }

    pub(crate) fn call(&self) {}
}

#[test]
fn a_start_hook_that_refuses_is_the_cause_for_everybody_who_called() {
    on_shards(ALL, |system| {
        let unwilling = system
            .block_on(system.keyed(|_: &String| Unwilling).start())
            .unwrap();
        let error = system
            .block_on(unwilling.at("a").call().into_future())
            .unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("the actor did not start: not in the mood"),
            "{error}"
        );
        // It is the same for an actor that was spawned.
        let error = system.run_on(0, || async { greenroom::spawn(Unwilling).call().await });
        assert!(error.unwrap_err().is_not_started());
    });
}

#[test]
fn an_instance_that_is_idle_ends_and_comes_again() {
    on_shards(ALL, |system| {
        let world = Arc::new(World::default());
        let made_in = world.clone();
        let starting = system
            .keyed(move |key: &u64| Account::new(*key, &made_in))
            .idle_after(Duration::from_millis(20))
            .start();
        let accounts = system.block_on(starting).unwrap();
        let (ended, ends) = mpsc::channel();
        let (open, gate) = oneshot::channel();
        // One that has something to do is not idle.
        system
            .block_on(accounts.at(&1000).wait(gate).tell())
            .unwrap();
        for round in 0..2 {
            for key in 0..8 {
                let told = accounts.at(&key).tell_of_end(ended.clone()).into_future();
                system.block_on(told).unwrap();
            }
            let mut gone: Vec<_> = (0..8).map(|_| hear(&ends)).collect();
            gone.sort_unstable();
            assert_eq!(gone, (0..8).collect::<Vec<_>>());
            assert_eq!(world.made(), 8 * (round + 1) + 1);
        }
        bounded_wait(|| accounts.live() == 1);
        assert_eq!(world.alive.lock().unwrap()[&1000], 1);
        drop(open);
        bounded_wait(|| accounts.live() == 0);
    });
}

#[test]
fn a_stop_handles_what_was_sent_before_and_later_calls_are_refused() {
    on_shards(ALL, |system| {
        for sender in [None, Some(0), Some(last_shard(system))] {
            let world = Arc::new(World::default());
            let accounts = accounts(system, &world);
            let stopped = accounts.clone();
            let act = move || {
                for key in 0..20 {
                    stopped.at(&key).note(0, key).try_tell().unwrap();
                }
                stopped.stop()
            };
            match sender {
                None => system.block_on(act()),
                Some(shard) => system.run_on(shard, || async move { act().await }),
            }
            assert_eq!(world.seen.lock().unwrap().len(), 20, "from {sender:?}");
            assert_eq!(accounts.live(), 0);
            let error = system
                .block_on(accounts.at(&1).note(0, 0).into_future())
                .unwrap_err();
            assert!(error.is_stopped(), "{error}");
            for shard in system.shards() {
                let accounts = accounts.clone();
                let asked =
                    system.run_on(shard, || async move { accounts.at(&1).note(0, 0).await });
                assert!(asked.unwrap_err().is_stopped());
            }
            // Again: nothing is left to be waited for.
            system.block_on(accounts.stop());
        }
    });
}

/// A key that cannot be copied.
#[derive(PartialEq, Eq, Hash)]
struct Sealed(String);

struct Named {
    key: Arc<Sealed>,
}

#[actor]
impl Named {
    pub(crate) fn name(&self) -> String {
        self.key.0.clone()
    }
}

#[test]
fn a_key_that_is_no_clone_is_wrapped() {
    on_shards(ALL, |system| {
        let named = system.keyed(|key: &Arc<Sealed>| Named { key: key.clone() });
        let named = system.block_on(named.never_idle().start()).unwrap();
        for key in ["a", "b", "c", "d"] {
            let key = Arc::new(Sealed(key.to_owned()));
            let name = system.block_on(named.at(&key).name().into_future());
            assert_eq!(name.unwrap(), key.0);
        }
        assert_eq!(named.live(), 4);
    });
}

#[test]
fn a_shutdown_stops_instances_as_it_stops_every_actor() {
    for shards in ALL {
        bounded("the body", move || {
            let system = start(*shards);
            let world = Arc::new(World::default());
            let accounts = accounts(&system, &world);
            for key in 0..10 {
                system
                    .block_on(accounts.at(&key).note(0, key).into_future())
                    .unwrap();
            }
            let report = system.shutdown(PATIENCE);
            assert_eq!((report.stopped(), report.killed().len()), (10, 0));
            assert!(
                world
                    .alive
                    .lock()
                    .unwrap()
                    .values()
                    .all(|alive| *alive == 0)
            );
            let late = futures_util::future::FutureExt::now_or_never(accounts.stop());
            assert_eq!(late, Some(()));
        });
    }
}

#[test]
fn many_keys_come_and_go_and_leave_nothing() {
    on_shards(ALL, |system| {
        let world = Arc::new(World::default());
        let accounts = accounts(system, &world);
        let churned = accounts.clone();
        system.run_on(0, move || async move {
            for key in 0..5_000 {
                let at = churned.at(&key);
                at.note(0, key).tell().await.unwrap();
                at.passivate().tell().await.unwrap();
            }
        });
        bounded_wait(|| world.made() == 5_000 && accounts.live() == 0);
        assert_eq!(world.seen.lock().unwrap().len(), 5_000);
        bounded_wait(|| counts(system).actors == 0);
    });
}

#[test]
fn no_idle_time_at_all_is_the_shortest_there_is() {
    on_shards(ALL, |system| {
        let world = Arc::new(World::default());
        let made_in = world.clone();
        let starting = system
            .keyed(move |key: &u64| Account::new(*key, &made_in))
            .idle_after(Duration::ZERO)
            .start();
        let accounts = system.block_on(starting).unwrap();
        let (open, gate) = oneshot::channel();
        system.block_on(accounts.at(&1).wait(gate).tell()).unwrap();
        for _ in 0..3 {
            system
                .block_on(accounts.at(&0).note(0, 0).into_future())
                .unwrap();
            bounded_wait(|| accounts.live() == 1);
        }
        drop(open);
        bounded_wait(|| accounts.live() == 0);
        assert_eq!(world.made(), 4);
    });
}

/// Panics when it is dropped on a shard, if it is told to.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Burr(u32);

static STICKS: AtomicBool = AtomicBool::new(false);

impl Drop for Burr {
    fn drop(&mut self) {
        let on_shard = greenroom::runtime::current_shard().is_some();
        assert!(!on_shard || !STICKS.load(Ordering::Relaxed), "it sticks");
    }
}

#[test]
fn keys_that_panic_in_their_drop_lose_no_message_and_hold_up_no_stop() {
    on_shards(ALL, |system| {
        STICKS.store(false, Ordering::Relaxed);
        let world = Arc::new(World::default());
        let starting = system
            .keyed(move |key: &Burr| Account::new(u64::from(key.0), &world))
            .start();
        let accounts = system.block_on(starting).unwrap();
        for round in 0..2 {
            for key in 0..8 {
                let at = Burr(key);
                let noted = accounts.at(&at).note(0, round).into_future();
                system.block_on(noted).unwrap();
            }
            STICKS.store(true, Ordering::Relaxed);
        }
        system.block_on(accounts.stop());
        assert_eq!(accounts.live(), 0);
    });
}
