//! Which hooks run for which end, what those who wait are told, and what a watcher hears.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom::{Down, ExitReason, LifeState, Owned, Restart, ToldError, spawn_started};
use greenroom_tests::{
    bounded, bounded_wait, counts, hear, last_shard, ledger, on_shards, poll_once, start_hasty,
};

/// How an actor is to start.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    Good,
    Refuses,
    Panics,
}

/// Notes which of its hooks run, and when it is dropped.
pub(crate) struct Diary {
    log: mpsc::Sender<&'static str>,
    start: Start,
}

#[actor]
impl Diary {
    #[on(started)]
    async fn started(&mut self) -> Result<(), &'static str> {
        self.note("started");
        yield_now().await;
        match self.start {
            Start::Good => Ok(()),
            Start::Refuses => Err("not today"),
            Start::Panics => panic!("no ink"),
        }
    }

    #[on(stopping)]
    async fn stopping(&mut self) {
        yield_now().await;
        self.note("stopping");
    }

    pub(crate) fn write(&mut self) {
        self.note("write");
    }

    pub(crate) fn stop(&mut self, ctx: &mut Ctx<Self>) {
        ctx.stop();
    }

    pub(crate) fn stop_now(&mut self, ctx: &mut Ctx<Self>) {
        ctx.stop_now();
    }

    pub(crate) async fn kill(&mut self, ctx: &mut Ctx<Self>) {
        ctx.kill();
        yield_now().await;
        self.note("after the kill");
    }

    pub(crate) fn fail(&mut self, ctx: &mut Ctx<Self>) {
        ctx.fail("the ink is gone");
        self.note("end of the handler");
    }

    pub(crate) async fn fail_async(&mut self, ctx: &mut Ctx<Self>) {
        ctx.fail("the ink is gone");
        yield_now().await;
        self.note("end of the handler");
    }

    pub(crate) fn panic(&mut self) {
        panic!("a blot");
    }

    pub(crate) async fn panic_async(&mut self) {
        yield_now().await;
        panic!("a blot");
    }

    pub(crate) fn link(&mut self, other: Addr<Diary>, ctx: &mut Ctx<Self>) {
        ctx.link(other);
    }

    /// Waits until the gate opens.
    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        self.note("waits");
        gate.await.ok();
        self.note("waited");
    }

    fn note(&self, what: &'static str) {
        // The test may have heard enough.
        self.log.send(what).ok();
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        self.note("dropped");
    }
}

pub(crate) fn diary(system: &System) -> (Addr<Diary>, mpsc::Receiver<&'static str>) {
    let (log, heard) = mpsc::channel();
    let start = Start::Good;
    let spawned = system.spawn_on(last_shard(system), move || Diary { log, start });
    (system.block_on(spawned).unwrap(), heard)
}

/// The hooks that ran for an end, and what a watcher was told.
fn check(
    end: fn(&System, Addr<Diary>),
    hooks: &'static [&'static str],
    told: fn(&ExitReason) -> bool,
) {
    on_shards(&[1, 2, 4], move |system| {
        let (diary, heard) = diary(system);
        let down = Addr::watch(diary);
        end(system, diary);
        let down = system.block_on(down);
        assert!(told(&down.reason), "{down}");
        assert_eq!(down.name, "Diary");
        assert_eq!(down.id, Addr::actor_id(diary));
        assert_eq!(
            down.shard,
            Some(last_shard(system).into()),
            "it knows where it lived"
        );
        assert_eq!(heard.iter().collect::<Vec<_>>(), hooks, "{down}");
    });
}

const STOPS: &[&str] = &["started", "write", "stopping", "dropped"];
const FAILS: &[&str] = &["started", "dropped"];

const DECLARES: &[&str] = &["started", "end of the handler", "dropped"];

fn write(diary: Addr<Diary>) {
    diary.write().try_tell().unwrap();
}

#[test]
fn a_stop_runs_the_stopping_hook() {
    let stopped = |reason: &ExitReason| matches!(reason, ExitReason::Stopped);
    check(
        |_, diary| {
            write(diary);
            Addr::stop(diary);
        },
        STOPS,
        stopped,
    );
    check(
        |system, diary| {
            write(diary);
            system.block_on(diary.write().into_future()).unwrap();
            Addr::stop_now(diary);
        },
        &["started", "write", "write", "stopping", "dropped"],
        stopped,
    );
    check(
        |_, diary| {
            write(diary);
            diary.stop().try_tell().unwrap();
        },
        STOPS,
        stopped,
    );
    check(
        |_, diary| {
            write(diary);
            diary.stop_now().try_tell().unwrap();
        },
        STOPS,
        stopped,
    );
    check(
        |_, diary| {
            write(diary);
            drop(Owned::new(diary));
        },
        STOPS,
        stopped,
    );
}

#[test]
fn a_kill_runs_no_hook() {
    let killed = |reason: &ExitReason| matches!(reason, ExitReason::Killed);
    check(|_, diary| Addr::kill(diary), FAILS, killed);
    check(|_, diary| diary.kill().try_tell().unwrap(), FAILS, killed);
}

#[test]
fn a_failure_runs_no_hook() {
    let panicked = |reason: &ExitReason| {
        reason.is_failure() && reason.panic().is_some_and(|panic| panic.text() == "a blot")
    };
    check(
        |_, diary| diary.panic().try_tell().unwrap(),
        FAILS,
        panicked,
    );
    check(
        |_, diary| diary.panic_async().try_tell().unwrap(),
        FAILS,
        panicked,
    );
    // Handled on the stack of its asker.
    check(
        |system, diary| {
            let asked = system.run_on(last_shard(system), move || async move {
                yield_now().await;
                diary.panic().await
            });
            assert!(asked.unwrap_err().panic().is_some());
        },
        FAILS,
        panicked,
    );
    let failed = |reason: &ExitReason| {
        reason.is_failure()
            && reason
                .error()
                .is_some_and(|error| error.to_string() == "the ink is gone")
    };
    check(
        |_, diary| diary.fail().try_tell().unwrap(),
        DECLARES,
        failed,
    );
    check(
        |_, diary| diary.fail_async().try_tell().unwrap(),
        DECLARES,
        failed,
    );
}

#[test]
fn a_handler_that_declares_a_fatal_error_still_answers() {
    on_shards(&[1, 2], |system| {
        let (diary, _heard) = diary(system);
        system.block_on(diary.fail().into_future()).unwrap();
        let error = system.block_on(diary.write().into_future()).unwrap_err();
        assert!(error.is_stopped(), "{error}");
    });
}

#[test]
fn a_linked_actor_fails_with_the_other_one_where_it_waits() {
    on_shards(&[1, 2, 4], |system| {
        let (diary, heard) = diary(system);
        let (other, _) = self::diary(system);
        system.block_on(diary.link(other).into_future()).unwrap();
        let (_open, gate) = oneshot::channel();
        let mut waits = diary.wait(gate).into_future();
        assert!(poll_once(&mut waits).is_pending());
        assert_eq!([hear(&heard), hear(&heard)], ["started", "waits"]);
        let down = Addr::watch(diary);
        Addr::kill(other);
        let down = system.block_on(down);
        let ExitReason::Linked(first) = &down.reason else {
            panic!("{down}");
        };
        assert_eq!(first.id, Addr::actor_id(other));
        assert!(matches!(system.block_on(waits), Err(CallError::Killed(_))));
        assert_eq!(heard.iter().collect::<Vec<_>>(), ["dropped"]);
        assert_eq!(
            down.to_string(),
            format!(
                "Diary on shard {0} (actor {1}): it was linked with an actor that ended: Diary on shard {0} (actor {2}): it was killed",
                last_shard(system),
                down.id,
                first.id
            )
        );
    });
}

#[test]
fn a_link_works_both_ways_and_passes_no_orderly_end_on() {
    on_shards(&[1, 2], |system| {
        let ((one, _log_one), (two, _log_two)) = (diary(system), diary(system));
        system.block_on(one.link(two).into_future()).unwrap();
        Addr::stop(two);
        system.block_on(Addr::stopped(two));
        system.block_on(one.write().into_future()).unwrap();

        let (three, _log) = diary(system);
        system.block_on(one.link(three).into_future()).unwrap();
        let down = Addr::watch(three);
        one.panic().try_tell().unwrap();
        assert!(matches!(
            system.block_on(down).reason,
            ExitReason::Linked(_)
        ));
        // Too late for a link: the other one is gone, and nobody knows how.
        let (four, _log) = diary(system);
        let down = Addr::watch(four);
        system.block_on(four.link(three).into_future()).ok();
        assert!(matches!(
            system.block_on(down).reason,
            ExitReason::Linked(_)
        ));
    });
}

#[test]
fn an_actor_that_does_not_start_runs_no_other_hook() {
    on_shards(&[1, 2], |system| {
        for start in [Start::Refuses, Start::Panics] {
            let (log, heard) = mpsc::channel();
            let spawned = system.spawn_on(last_shard(system), move || Diary { log, start });
            let error = system.block_on(spawned).unwrap_err();
            assert_eq!(error.is_panic(), start == Start::Panics, "{error}");
            assert_eq!(heard.iter().collect::<Vec<_>>(), ["started", "dropped"]);
            // The same without a thread to cross.
            let (log, heard) = mpsc::channel();
            let error = system.run_on(0, move || spawn_started(Diary { log, start }));
            assert_eq!(error.unwrap_err().is_panic(), start == Start::Panics);
            assert_eq!(heard.iter().collect::<Vec<_>>(), ["started", "dropped"]);
        }
        let (log, _heard) = mpsc::channel();
        let start = Start::Good;
        let diary = system.run_on(0, move || spawn_started(Diary { log, start }));
        system
            .block_on(diary.unwrap().write().into_future())
            .unwrap();
    });
}

#[test]
fn a_spawn_that_is_given_up_leaves_no_actor() {
    on_shards(&[1, 2], |system| {
        let (log, heard) = mpsc::channel();
        let start = Start::Good;
        drop(system.spawn_on(last_shard(system), move || Diary { log, start }));
        let heard: Vec<_> = heard.iter().collect();
        // It had been made by then, or never was.
        assert!(
            heard.is_empty() || heard == ["started", "stopping", "dropped"],
            "{heard:?}"
        );
        bounded_wait(|| counts(system).actors == 0);
    });
}

/// Its start hook never ends.
struct Hesitant {
    begun: mpsc::Sender<&'static str>,
}

#[actor]
impl Hesitant {
    #[on(started)]
    async fn started(&mut self) {
        self.begun.send("started").unwrap();
        std::future::pending::<()>().await;
    }

    pub(crate) fn nothing(&self) {}
}

#[test]
fn a_spawn_that_is_given_up_while_the_start_hook_waits_leaves_no_actor() {
    bounded("the grace", || {
        for shards in [1, 2] {
            let system = start_hasty(shards);
            let (begun, heard) = mpsc::channel();
            for shard in system.shards() {
                let begun = begun.clone();
                let mut spawned = Box::pin(system.spawn_on(shard, move || Hesitant { begun }));
                assert!(poll_once(&mut spawned).is_pending());
                assert_eq!(hear(&heard), "started");
                drop(spawned);
                bounded_wait(|| counts(&system).actors == 0);
            }
        }
    });
}

#[test]
fn an_actor_that_does_not_stop_in_time_is_killed_and_says_where_it_was() {
    bounded("the grace", || {
        for shards in [1, 2, 4] {
            let system = start_hasty(shards);
            let (diary, heard) = diary(&system);
            let (_open, gate) = oneshot::channel();
            let mut waits = diary.wait(gate).into_future();
            assert!(poll_once(&mut waits).is_pending());
            let down = Addr::watch(diary);
            Addr::stop(diary);
            let down = system.block_on(down);
            let ExitReason::GraceExpired(overdue) = &down.reason else {
                panic!("{down}");
            };
            assert_eq!(overdue.method, Some("wait"));
            assert_eq!(overdue.grace, Duration::from_millis(20));
            assert!(overdue.since.is_some());
            assert!(down.to_string().contains("in `wait` for"), "{down}");
            assert_eq!(
                heard.iter().collect::<Vec<_>>(),
                ["started", "waits", "dropped"]
            );
            assert!(matches!(system.block_on(waits), Err(CallError::Killed(_))));
        }
    });
}

#[test]
fn stops_that_end_in_time_are_not_killed() {
    bounded("the stops", || {
        let grace = Duration::from_millis(200);
        let system = System::builder().shards(2).pin(false).stop_grace(grace);
        let system = system.start().unwrap();
        for _ in 0..50 {
            let (diary, _heard) = diary(&system);
            for _ in 0..10 {
                diary.write().try_tell().unwrap();
            }
            let down = Addr::watch(diary);
            Addr::stop(diary);
            let down = system.block_on(down);
            assert!(down.reason.is_orderly(), "{down}");
        }
    });
}

#[test]
fn the_state_of_a_life_can_be_seen() {
    on_shards(&[1, 2], |system| {
        let (diary, _heard) = diary(system);
        let state = || system.block_on(Addr::state(diary));
        assert_eq!(state(), LifeState::Running);
        let (open, gate) = oneshot::channel();
        system.block_on(diary.wait(gate).tell()).unwrap();
        Addr::stop(diary);
        assert_eq!(state(), LifeState::Draining);
        open.send(()).unwrap();
        system.block_on(Addr::stopped(diary));
        assert_eq!(state(), LifeState::Stopped);
    });
}

#[test]
fn a_watcher_hears_once_and_also_of_the_dead() {
    on_shards(&[1, 2, 4], |system| {
        let (diary, _heard) = diary(system);
        let early: Vec<_> = system
            .shards()
            .map(|shard| system.runtime().spawn_on(shard, move || Addr::watch(diary)))
            .collect();
        let outside = Addr::watch(diary);
        system.block_on(Addr::state(diary));
        diary.panic().try_tell().unwrap();
        assert!(system.block_on(outside).reason.panic().is_some());
        for early in early {
            let down: Down = system.block_on(early).unwrap();
            assert!(
                matches!(down.reason, ExitReason::Panicked(_) | ExitReason::Unknown),
                "{down}"
            );
        }
        let late = system.block_on(Addr::watch(diary));
        assert!(matches!(late.reason, ExitReason::Unknown), "{late}");
        assert!(late.to_string().contains("before anybody asked"), "{late}");
    });
}

/// Fails at what it is told, and hears of it.
struct Careful {
    heard: mpsc::Sender<(String, Option<u32>)>,
}

#[derive(Debug, PartialEq)]
struct Unshown;

#[actor]
impl Careful {
    pub(crate) fn refuse(&mut self, number: u32) -> Result<(), u32> {
        Err(number)
    }

    pub(crate) async fn refuse_unshown(&mut self) -> Result<(), Unshown> {
        yield_now().await;
        Err(Unshown)
    }

    pub(crate) fn accept(&mut self) -> Result<u32, String> {
        Ok(1)
    }

    #[on(error)]
    async fn failed(&mut self, error: ToldError, ctx: &mut Ctx<Self>) {
        yield_now().await;
        assert_eq!(ctx.state(), LifeState::Running);
        self.heard
            .send((error.to_string(), error.get::<u32>().copied()))
            .unwrap();
    }
}

#[test]
fn the_error_of_a_told_message_goes_to_the_hook_and_kills_nobody() {
    on_shards(&[1, 2], |system| {
        let (heard, errors) = mpsc::channel();
        let careful = system.spawn_on(last_shard(system), move || Careful { heard });
        let careful = system.block_on(careful).unwrap();
        careful.refuse(7).try_tell().unwrap();
        assert_eq!(hear(&errors), ("`refuse`: 7".to_owned(), Some(7)));
        careful.refuse_unshown().try_tell().unwrap();
        let unshown = "`refuse_unshown`: an error that cannot be shown";
        assert_eq!(hear(&errors), (unshown.to_owned(), None));
        let asked = system.block_on(careful.refuse(8).into_future());
        assert!(matches!(asked, Err(CallError::Handler(8))));
        assert_eq!(system.block_on(careful.accept().into_future()).unwrap(), 1);
        assert!(errors.try_recv().is_err(), "an asker has its error");
        assert_eq!(counts(system).told_errors, 2);
    });
}

#[test]
fn watches_that_were_given_up_leave_nothing_behind() {
    on_shards(&[1, 2], |system| {
        let target: Addr<greenroom_tests::Ledger<1>> = ledger(system, last_shard(system));
        for _ in 0..10_000 {
            let mut watch = Box::pin(Addr::watch(target));
            assert!(poll_once(&mut watch).is_pending());
        }
        system.block_on(Addr::state(target));
        let (stays, _log) = diary(system);
        let down = Addr::watch(stays);
        Addr::stop(target);
        system.block_on(Addr::stopped(target));
        Addr::stop(stays);
        assert!(system.block_on(down).reason.is_orderly());
    });
}

#[test]
fn restarts_are_never_by_default() {
    assert_eq!(Restart::default(), Restart::Never);
}
