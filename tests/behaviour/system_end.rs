//! How systems end, and what is said of it.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::FutureExt;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom::{ExitReason, OnRootFailure};
use greenroom_tests::{
    Ledger, PATIENCE, block_shard, bounded, counts, hear, last_shard, ledger, on_shards, start,
};

use crate::exits::diary;

#[test]
fn a_watcher_of_a_system_that_goes_hears_of_it() {
    bounded("the watchers", || {
        let system = start(2);
        let (one, _heard) = diary(&system);
        let down = Addr::watch(one);
        let stopped = system.shutdown(Duration::from_secs(10));
        assert_eq!(stopped.stopped(), 1);
        let other = start(1);
        let down = other.block_on(down);
        assert!(matches!(down.reason, ExitReason::Shutdown), "{down}");
        let late = other.block_on(Addr::watch(one));
        assert!(matches!(late.reason, ExitReason::Unknown), "{late}");

        let system = start(2);
        let (one, _heard) = diary(&system);
        let down = Addr::watch(one);
        system.block_on(Addr::state(one));
        drop(system);
        let down = other.block_on(down);
        assert!(matches!(down.reason, ExitReason::Killed), "{down}");
    });
}

#[test]
fn a_shutdown_says_what_was_stuck_where() {
    bounded("the shutdown", || {
        for shards in [1, 2, 4] {
            let system = start(shards);
            let (one, _heard) = diary(&system);
            let (_open, gate) = oneshot::channel();
            system.block_on(one.wait(gate).tell()).unwrap();
            system.block_on(Addr::state(one));
            let report = system.shutdown(Duration::from_millis(20));
            let [killed] = report.killed() else {
                panic!("{report:?}");
            };
            assert_eq!(
                (killed.actor(), killed.method(), killed.shard().index()),
                ("Diary", Some("wait"), shards - 1)
            );
            assert!(killed.since().is_some());
            assert!(killed.to_string().contains("in `wait` for"), "{killed}");
        }
    });
}

#[test]
fn drain_waits_until_nothing_is_left_to_do() {
    /// Passes a number on until it is zero.
    struct Relay {
        next: Option<Addr<Relay>>,
        done: u32,
    }

    #[actor(mailbox = 4)]
    impl Relay {
        pub(crate) fn next(&mut self, next: Addr<Relay>) {
            self.next = Some(next);
        }

        pub(crate) async fn pass(&mut self, left: u32) {
            if left > 0 {
                yield_now().await;
                let next = self.next.expect("told before");
                next.pass(left - 1).tell().await.unwrap();
            } else {
                self.done += 1;
            }
        }

        pub(crate) fn done(&self) -> u32 {
            self.done
        }
    }

    on_shards(&[1, 2, 4], |system| {
        system.block_on(async {
            let mut relays = Vec::new();
            for shard in system.shards() {
                let next = None;
                relays.push(
                    system
                        .spawn_on(shard, move || Relay { next, done: 0 })
                        .await
                        .unwrap(),
                );
            }
            if relays.len() == 1 {
                // One that passes to itself is refused when its mailbox is full: two then.
                relays.push(
                    system
                        .spawn_on(0, || Relay {
                            next: None,
                            done: 0,
                        })
                        .await
                        .unwrap(),
                );
            }
            for (at, relay) in relays.iter().enumerate() {
                relay.next(relays[(at + 1) % relays.len()]).await.unwrap();
            }
            for round in 1..=20 {
                relays[0].pass(97 * round).tell().await.unwrap();
                system.drain().await;
                let mut done = 0;
                for relay in &relays {
                    done += relay.done().await.unwrap();
                }
                assert_eq!(done, round);
            }
        });
    });
}

#[test]
fn a_failure_without_a_parent_follows_the_policy() {
    bounded("the policies", || {
        for shards in [1, 2] {
            let (heard, failures) = mpsc::channel();
            let policy = OnRootFailure::call(move |down| heard.send(down.to_string()).unwrap());
            let system = System::builder().shards(shards).pin(false);
            let system = system.on_root_failure(policy).start().unwrap();
            let (one, _log) = diary(&system);
            Addr::kill(one);
            let (two, _log) = diary(&system);
            two.panic().try_tell().unwrap();
            let text = hear(&failures);
            assert!(text.contains("Diary on shard"), "{text}");
            assert!(text.contains("a blot"), "{text}");
            assert!(failures.try_recv().is_err(), "a kill is no failure");

            let system = System::builder().shards(shards).pin(false);
            let policy = OnRootFailure::StopSystem;
            let system = system.on_root_failure(policy).start().unwrap();
            let ((one, log), (two, _log)) = (diary(&system), diary(&system));
            two.panic().try_tell().unwrap();
            system.wait_for_termination().unwrap();
            let down = system.block_on(Addr::watch(one));
            assert!(!down.reason.is_failure(), "{down}");
            assert!(log.iter().any(|what| what == "stopping"));
            let report = system.shutdown(Duration::from_secs(10));
            let [failure] = report.root_failures() else {
                panic!("{report:?}");
            };
            assert_eq!(failure.id, Addr::actor_id(two));
        }
    });
}

/// The threads and open files of this process.
fn held() -> (usize, usize) {
    let count = |path| std::fs::read_dir(path).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// In a process of its own tests would be more exact; here others run beside this one, so it looks for growth.
#[test]
fn systems_that_come_and_go_leave_nothing() {
    bounded("the systems", || {
        let round = |system: System| drop(system);
        for shards in [1, 2, 4] {
            round(start(shards));
        }
        let before = held();
        const ROUNDS: usize = 200;
        for number in 0..ROUNDS {
            let system = start(1 + number % 2);
            if number % 3 == 0 {
                let (one, _heard) = diary(&system);
                one.write().try_tell().unwrap();
            }
            if number % 5 == 0 {
                let report = system.shutdown(Duration::from_secs(10));
                assert_eq!(report.killed().len(), 0);
            } else {
                round(system);
            }
        }
        let after = held();
        assert!(
            after.0 < before.0 + ROUNDS / 2,
            "threads: {before:?}, {after:?}"
        );
        assert!(
            after.1 < before.1 + ROUNDS / 2,
            "files: {before:?}, {after:?}"
        );
    });
}

#[test]
fn systems_live_beside_and_within_each_other() {
    bounded("the systems", || {
        let outer = start(2);
        let (one, _heard) = diary(&outer);
        let handle = outer.handle().clone();
        let inner = start(2);
        let (two, _heard) = diary(&inner);
        // A shard of one system asks and watches an actor of the other.
        let asked = inner.run_on(0, move || async move { one.write().await.is_ok() });
        assert!(asked);
        let down = outer.run_on(0, move || std::future::ready(Addr::watch(two)));
        assert_eq!(inner.shutdown(Duration::from_secs(10)).stopped(), 1);
        let down = outer.block_on(down);
        assert!(matches!(down.reason, ExitReason::Shutdown), "{down}");
        // A task of the one may start and end another.
        let ended = handle.runtime().spawn_on(0, || async {
            let nested = std::thread::spawn(|| {
                let system = start(1);
                let (three, _heard) = diary(&system);
                system.block_on(three.write().into_future()).is_ok()
            });
            nested.join().unwrap()
        });
        assert!(outer.block_on(ended).unwrap());
        outer.block_on(one.write().into_future()).unwrap();
    });
}

#[test]
fn what_is_sent_to_a_system_that_is_gone_waits_for_no_other_one() {
    for shards in [1, 2, 4] {
        bounded("the calls", move || {
            let gone = start(shards);
            let ledger: Addr<Ledger<4>> = ledger(&gone, last_shard(&gone));
            gone.shutdown(PATIENCE);
            // They have the numbers of the shards that are gone, and do not look at what they are sent.
            let other = start(shards);
            let held: Vec<_> = (0..=last_shard(&other))
                .map(|shard| block_shard(&other, shard))
                .collect();
            let asked = ledger.note(0, 1).into_future().now_or_never();
            let error = asked.expect("it does not wait").unwrap_err();
            assert!(error.is_stopped(), "{error}");
            let told = ledger.note(0, 2).tell().now_or_never();
            let error = told.expect("it does not wait").unwrap_err();
            assert!(error.is_stopped(), "{error}");
            let error = ledger.note(0, 3).try_tell().unwrap_err();
            assert!(error.is_stopped(), "{error}");
            assert_eq!(error.into_args(), Some((0, 3)));
            assert!(Addr::stopped(ledger).now_or_never().is_some());
            drop(held);
            assert_eq!(counts(&other).dead_letters, 0);
        });
    }
}

#[test]
fn an_empty_system_shuts_down_with_a_report() {
    bounded("the shutdowns", || {
        for round in 0..50 {
            let system = start(1 + round % 3);
            let (one, _heard) = diary(&system);
            system.block_on(one.panic().into_future()).ok();
            system.block_on(Addr::stopped(one));
            let report = system.shutdown(Duration::from_secs(10));
            assert_eq!((report.stopped(), report.counts().panics), (0, 1));
            assert_eq!(report.root_failures().len(), 1);
        }
    });
}
