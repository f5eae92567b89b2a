//! The ways an actor ends, and what becomes of what it was sent.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::{JoinError, yield_now};
use greenroom_tests::{
    Homely, Ledger, block_shard, bounded, counts, hear, last_shard, ledger, on_shards, poll_once,
    start,
};

/// Ends itself in many ways, and notes what it does.
struct Mortal {
    log: mpsc::Sender<&'static str>,
}

#[actor(mailbox = 8)]
impl Mortal {
    pub(crate) fn step(&mut self) {
        self.note("step");
    }

    pub(crate) fn stop_after_all(&mut self, ctx: &mut Ctx<Self>) {
        self.note("stop");
        ctx.stop();
    }

    pub(crate) fn stop_at_once(&mut self, ctx: &mut Ctx<Self>) {
        self.note("stop now");
        ctx.stop_now();
    }

    pub(crate) fn kill_self(&mut self, ctx: &mut Ctx<Self>) {
        self.note("kill");
        Addr::kill(ctx.addr());
    }

    pub(crate) async fn kill_self_async(&mut self, ctx: &mut Ctx<Self>) {
        self.note("kill");
        Addr::kill(ctx.addr());
    }

    pub(crate) async fn kill_self_and_wait(&mut self, ctx: &mut Ctx<Self>) {
        self.note("kill");
        Addr::kill(ctx.addr());
        yield_now().await;
        self.note("after the kill");
    }

    pub(crate) async fn hold(&mut self, value: Held, gate: oneshot::Receiver<()>) {
        self.note("hold");
        gate.await.ok();
        drop(value);
        self.note("held");
    }

    #[on(stopping)]
    async fn stopping(&mut self) {
        yield_now().await;
        self.note("stopping");
    }

    fn note(&self, what: &'static str) {
        // The test may have heard enough.
        self.log.send(what).ok();
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.note("dropped");
    }
}

/// Says when it is dropped.
#[derive(Debug)]
struct Held(mpsc::Sender<&'static str>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send("local dropped").ok();
    }
}

fn mortal(system: &System) -> (Addr<Mortal>, mpsc::Receiver<&'static str>) {
    let (log, heard) = mpsc::channel();
    let mortal = system
        .block_on(system.spawn_on(last_shard(system), || Mortal { log }))
        .unwrap();
    (mortal, heard)
}

/// What a mortal did after a message was followed by two steps from the same sender, from each kind of sender.
fn check_end(begin: fn(Addr<Mortal>), log: &'static [&'static str]) {
    on_shards(&[1, 2], move |system| {
        for sender in [None, Some(0), Some(last_shard(system))] {
            let (mortal, heard) = mortal(system);
            let act = move || {
                begin(mortal);
                for _ in 0..2 {
                    mortal.step().try_tell().ok();
                }
            };
            match sender {
                None => act(),
                Some(shard) => system.run_on(shard, move || async move { act() }),
            }
            system.block_on(Addr::stopped(mortal));
            assert_eq!(
                heard.iter().collect::<Vec<_>>(),
                log,
                "sender on {sender:?}"
            );
        }
    });
}

#[test]
fn stop_handles_what_its_caller_sent_before_it_and_refuses_what_comes_later() {
    check_end(
        |mortal| {
            mortal.step().try_tell().unwrap();
            mortal.step().try_tell().unwrap();
            Addr::stop(mortal);
        },
        &["step", "step", "stopping", "dropped"],
    );
}

#[test]
fn stop_in_a_handler_handles_what_had_come_by_then() {
    on_shards(&[1, 2], |system| {
        let (mortal, heard) = mortal(system);
        let release = block_shard(system, last_shard(system));
        mortal.stop_after_all().try_tell().unwrap();
        mortal.step().try_tell().unwrap();
        drop(release);
        system.block_on(Addr::stopped(mortal));
        assert_eq!(
            heard.iter().collect::<Vec<_>>(),
            ["stop", "step", "stopping", "dropped"]
        );
    });
}

#[test]
fn stop_now_in_a_handler_makes_it_the_last_one() {
    check_end(
        |mortal| mortal.stop_at_once().try_tell().unwrap(),
        &["stop now", "stopping", "dropped"],
    );
}

#[test]
fn an_actor_that_kills_itself_handles_nothing_more() {
    check_end(
        |mortal| mortal.kill_self().try_tell().unwrap(),
        &["kill", "dropped"],
    );
    check_end(
        |mortal| mortal.kill_self_async().try_tell().unwrap(),
        &["kill", "dropped"],
    );
    check_end(
        |mortal| mortal.kill_self_and_wait().try_tell().unwrap(),
        &["kill", "dropped"],
    );
}

#[test]
fn kill_cancels_the_handler_where_it_waits_and_drops_its_locals_before_the_state() {
    on_shards(&[1, 2, 4], |system| {
        for killer in [None, Some(0), Some(last_shard(system))] {
            let (mortal, heard) = mortal(system);
            let (log, locals) = mpsc::channel();
            let (_open, gate) = oneshot::channel();
            let mut held = mortal.hold(Held(log), gate).into_future();
            assert!(poll_once(&mut held).is_pending());
            let mut waits = mortal.step().into_future();
            assert!(poll_once(&mut waits).is_pending());
            assert_eq!(hear(&heard), "hold");
            match killer {
                None => Addr::kill(mortal),
                Some(shard) => system.run_on(shard, move || async move { Addr::kill(mortal) }),
            }
            let error = system.block_on(held).unwrap_err();
            assert!(matches!(error, CallError::Killed(_)), "{error}");
            assert_eq!(error.handler_ran(), greenroom::HandlerRan::Yes);
            let error = system.block_on(waits).unwrap_err();
            assert!(error.is_stopped(), "{error}");
            system.block_on(Addr::stopped(mortal));
            assert_eq!(
                heard.iter().collect::<Vec<_>>(),
                ["dropped"],
                "no stopping hook, killed from {killer:?}"
            );
            assert_eq!(locals.iter().collect::<Vec<_>>(), ["local dropped"]);
        }
    });
}

/// A stop from outside keeps its place behind messages from outside that still wait for room.
#[test]
fn stop_from_outside_handles_what_waited_for_room_before_it() {
    on_shards(&[1, 2], |system| {
        let (mortal, heard) = mortal(system);
        let (log, _locals) = mpsc::channel();
        let (open, gate) = oneshot::channel();
        system
            .block_on(mortal.hold(Held(log), gate).tell())
            .unwrap();
        for _ in 0..30 {
            mortal.step().try_tell().unwrap();
        }
        Addr::stop(mortal);
        open.send(()).unwrap();
        system.block_on(Addr::stopped(mortal));
        let steps = heard.iter().filter(|what| *what == "step").count();
        assert_eq!(steps, 30);
        assert_eq!(counts(system).dead_letters, 0);
    });
}

#[test]
fn stop_from_a_shard_handles_what_the_link_still_held() {
    on_shards(&[2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 1);
        let sent = system.run_on(0, move || async move {
            let mut sent = 0;
            while ledger.note(0, sent).try_tell().is_ok() {
                sent += 1;
            }
            let last = ledger.note(0, sent).tell();
            last.await.unwrap();
            Addr::stop(ledger);
            Addr::stopped(ledger).await;
            sent + 1
        });
        assert!(sent > 1);
        assert_eq!(counts(system).dead_letters, 0);
    });
}

#[test]
fn senders_in_the_line_of_a_stopped_actor_get_their_arguments_back() {
    on_shards(&[1, 2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 0);
        let (open, gate) = oneshot::channel();
        system.run_on(0, move || async move {
            ledger.wait(gate).tell().await.unwrap();
            yield_now().await;
            ledger.note(0, 0).tell().await.unwrap();
            let mut waits = ledger.note(3, 4).tell();
            assert!(poll_once(&mut waits).is_pending());
            let mut asks = ledger.note(3, 4).into_future();
            assert!(poll_once(&mut asks).is_pending());
            Addr::stop(ledger);
            let error = waits.await.unwrap_err();
            assert!(error.is_stopped());
            assert_eq!(error.into_args(), Some((3, 4)));
            assert!(asks.await.unwrap_err().is_stopped());
            open.send(()).unwrap();
            Addr::stopped(ledger).await;
        });
    });
}

#[test]
fn any_number_of_waiters_hear_of_the_end_at_any_time() {
    on_shards(&[1, 2, 4], |system| {
        let (mortal, _heard) = mortal(system);
        let waiting: Vec<_> = system
            .shards()
            .map(|shard| {
                system
                    .runtime()
                    .spawn_on(shard, move || Addr::stopped(mortal))
            })
            .chain([])
            .collect();
        let outside = Addr::stopped(mortal);
        Addr::stop(mortal);
        for waiting in waiting {
            system.block_on(waiting).unwrap();
        }
        system.block_on(outside);
        system.block_on(Addr::stopped(mortal));
        Addr::stop(mortal);
        Addr::kill(mortal);
        system.block_on(Addr::stopped(mortal));
    });
}

type Watch = Pin<Box<dyn Future<Output = ()>>>;

/// Looks, when it is dropped, whether its end has been announced already.
struct Watcher {
    watch: Rc<Cell<Option<Watch>>>,
    early: mpsc::Sender<bool>,
}

#[actor]
impl Watcher {
    pub(crate) fn nothing(&self) {}
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(mut watch) = self.watch.take() {
            self.early
                .send(matches!(poll_once(&mut watch), Poll::Ready(())))
                .unwrap();
        }
    }
}

#[test]
fn an_end_is_announced_after_the_state_is_dropped() {
    on_shards(&[1], |system| {
        for turns in [0, 1, 2] {
            let (early, heard) = mpsc::channel();
            system.run_on(0, move || async move {
                let watch = Rc::new(Cell::new(None));
                let watcher = greenroom::spawn(Watcher {
                    watch: watch.clone(),
                    early,
                });
                watch.set(Some(Box::pin(Addr::stopped(watcher)) as Pin<Box<_>>));
                for _ in 0..turns {
                    yield_now().await;
                }
                Addr::kill(watcher);
            });
            assert!(!hear(&heard), "killed after {turns} turns");
        }
    });
}

#[test]
fn shutdown_stops_actors_that_can_stop_and_kills_the_rest() {
    bounded("the shutdown", || {
        let system = start(2);
        let (log, _heard) = mpsc::channel();
        for shard in [0, 1] {
            let log = log.clone();
            system
                .block_on(system.spawn_on(shard, || Mortal { log }))
                .unwrap();
        }
        let stuck: Addr<Ledger<4>> = ledger(&system, 1);
        let (_open, gate) = oneshot::channel();
        let mut waits = stuck.wait(gate).into_future();
        assert!(poll_once(&mut waits).is_pending());
        system.block_on(async {
            // The stuck handler has begun when a second message stands in its mailbox alone.
            stuck.note(0, 0).tell().await.unwrap();
        });
        let report = system.shutdown(Duration::from_millis(50));
        assert_eq!(report.stopped(), 2);
        assert_eq!(report.killed().len(), 1);
        let killed = &report.killed()[0];
        assert_eq!(
            (killed.actor(), killed.shard().index(), killed.queued()),
            ("Ledger", 1, 1),
            "{killed}"
        );
        assert_eq!(report.leaked_operations(), 0);
        assert_eq!(report.counts().dead_letters, 1, "the message that waited");
    });
}

#[test]
fn an_asker_outside_hears_of_a_shutdown() {
    bounded("the shutdown", || {
        let system = start(2);
        let ledger: Addr<Ledger<1>> = ledger(&system, 1);
        let (_open, gate) = oneshot::channel();
        let mut runs = ledger.wait(gate).into_future();
        assert!(poll_once(&mut runs).is_pending());
        let mut queued: Vec<_> = (0..5)
            .map(|number| ledger.note(0, number).into_future())
            .collect();
        assert!(queued.iter_mut().all(|ask| poll_once(ask).is_pending()));
        system.block_on(greenroom_tests::settle(&system, 1));
        drop(system);
        let other = start(1);
        assert!(matches!(other.block_on(runs), Err(CallError::Killed(_))));
        for ask in queued {
            let error = other.block_on(ask).unwrap_err();
            assert_eq!(error.handler_ran(), greenroom::HandlerRan::No, "{error}");
        }
    });
}

#[test]
fn a_system_may_be_dropped_at_any_time() {
    bounded("fifty drops", || {
        for round in 0..50 {
            let system = start(1 + round % 4);
            if round % 2 == 0 {
                let ledger: Addr<Ledger<1>> = ledger(&system, 0);
                for number in 0..10 {
                    ledger.note(0, number).try_tell().unwrap();
                }
            }
            drop(system);
        }
    });
}

#[test]
fn state_and_futures_and_messages_are_dropped_at_home_when_the_system_goes() {
    /// Keeps what must be dropped on its shard.
    struct Keeper {
        kept: Vec<Homely>,
        log: mpsc::Sender<bool>,
    }

    #[actor]
    impl Keeper {
        pub(crate) async fn keep(&mut self, gate: oneshot::Receiver<()>) {
            self.kept.push(Homely::new(self.log.clone()));
            let local = Homely::new(self.log.clone());
            gate.await.ok();
            drop(local);
        }
    }

    bounded("the drop", || {
        for graceful in [true, false] {
            let system = start(4);
            let (log, heard) = mpsc::channel();
            let mut gates = Vec::new();
            for shard in system.shards() {
                let log = log.clone();
                let keeper = system.spawn_on(shard, move || Keeper {
                    kept: vec![Homely::new(log.clone())],
                    log,
                });
                let keeper = system.block_on(keeper).unwrap();
                let (open, gate) = oneshot::channel();
                gates.push(open);
                system.block_on(keeper.keep(gate).tell()).unwrap();
            }
            drop(log);
            if graceful {
                system.shutdown(Duration::from_millis(5));
            } else {
                drop(system);
            }
            let drops: Vec<bool> = heard.iter().collect();
            assert!(drops.len() >= 4, "{drops:?}");
            assert!(drops.iter().all(|at_home| *at_home));
        }
    });
}

#[test]
fn a_spawn_on_a_shard_that_does_not_exist_names_the_shards_there_are() {
    on_shards(&[1, 2], |system| {
        let error = system
            .block_on(system.spawn_on(7, Ledger::<1>::default))
            .unwrap_err();
        assert!(error.is_no_shard() && !error.is_panic());
        let count = system.shard_count();
        assert_eq!(
            error.to_string(),
            format!(
                "Ledger did not start on shard 7: the system has {count} shards, counted from 0"
            )
        );
    });
}

#[test]
fn a_spawn_after_the_system_is_gone_says_so() {
    bounded("the spawn", || {
        let system = start(1);
        let handle = system.handle().clone();
        drop(system);
        let spawned =
            futures_util::future::FutureExt::now_or_never(handle.spawn_on(0, Ledger::<1>::default));
        let error = spawned.expect("it does not wait").unwrap_err();
        assert_eq!(
            error.to_string(),
            "Ledger did not start on shard 0: the system is shutting down"
        );
    });
}

/// Starts in many ways.
enum Starter {
    Refuses,
    Panics,
    Waits,
}

#[actor]
impl Starter {
    pub(crate) fn nothing(&self) {}

    #[on(started)]
    async fn started(&mut self) -> Result<(), String> {
        yield_now().await;
        match self {
            Self::Refuses => Err("no licence".to_owned()),
            Self::Panics => panic!("no engine"),
            Self::Waits => Ok(()),
        }
    }
}

#[test]
fn a_start_hook_that_refuses_or_panics_is_the_error_of_the_spawn() {
    on_shards(&[1, 2], |system| {
        let shard = last_shard(system);
        let error = system
            .block_on(system.spawn_on(shard, || Starter::Refuses))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("Starter did not start on shard {shard}: no licence")
        );
        let error = system
            .block_on(system.spawn_on(shard, || Starter::Panics))
            .unwrap_err();
        assert!(error.is_panic());
        assert!(
            error
                .to_string()
                .contains("no engine (at tests/behaviour/stop.rs:"),
            "{error}"
        );
        let starter = system
            .block_on(system.spawn_on(shard, || Starter::Waits))
            .unwrap();
        system.block_on(starter.nothing().into_future()).unwrap();
        assert_eq!(counts(system).actors, 1);
    });
}

#[test]
fn a_factory_that_panics_is_the_error_of_the_spawn() {
    on_shards(&[1, 2], |system| {
        let spawned = system.spawn_on(last_shard(system), || -> Ledger<1> { panic!("no paper") });
        let error = system.block_on(spawned).unwrap_err();
        assert!(error.is_panic());
        assert!(
            error
                .to_string()
                .contains("no paper (at tests/behaviour/stop.rs:"),
            "{error}"
        );
        assert_eq!(counts(system).actors, 0);
    });
}

#[test]
fn one_shard_that_fails_to_start_its_instance_stops_the_others() {
    on_shards(&[2, 4], |system| {
        let spawned = system.spawn_sharded(|shard| {
            if shard.index() == 1 {
                Starter::Refuses
            } else {
                Starter::Waits
            }
        });
        let error = system.block_on(spawned).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Starter did not start on shard 1: no licence"
        );
        for _ in 0..10_000 {
            if counts(system).actors == 0 {
                return;
            }
        }
        panic!("instances are left");
    });
}

#[test]
fn what_is_sent_before_the_start_hook_is_done_waits_and_is_refused_if_it_fails() {
    on_shards(&[1], |system| {
        let outcomes = system.run_on(0, || async {
            let (good, bad) = (
                greenroom::spawn(Starter::Waits),
                greenroom::spawn(Starter::Refuses),
            );
            futures_util::join!(good.nothing().into_future(), bad.nothing().into_future())
        });
        outcomes.0.unwrap();
        assert!(outcomes.1.unwrap_err().is_not_started());
        assert_eq!(
            counts(system).told_errors,
            1,
            "nobody waited for the refusal"
        );
    });
}

#[test]
fn a_task_that_blocks_on_a_future_on_a_shard_is_told_that_it_must_not() {
    on_shards(&[1], |system| {
        let other = start(1);
        let blocked = system
            .runtime()
            .spawn_on(0, move || async move { other.block_on(async {}) });
        let error: JoinError = system.block_on(blocked).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("`block_on` was called on a shard"),
            "{error}"
        );
    });
}
