//! Children: how they end with their parents, and how they are started again.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom::{ChildExit, ChildOutcome, ExitReason, LifeState, Restart, SpawnError, Strategy};
use greenroom_tests::{counts, hear, last_shard, on_shards, poll_once};

/// What the children of a test do, in their order.
pub(crate) type Log = mpsc::Sender<String>;

/// A child that notes its life.
pub(crate) struct Worker {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) handled: u32,
    /// Incarnations whose start fails, by what the parent counts.
    pub(crate) fails_to_start: bool,
}

#[actor(mailbox = 64)]
impl Worker {
    #[on(started)]
    fn started(&mut self, ctx: &mut Ctx<Self>) -> Result<(), &'static str> {
        self.note(&format!("start {}", ctx.restarts()));
        if self.fails_to_start {
            Err("no tools")
        } else {
            Ok(())
        }
    }

    #[on(stopping)]
    fn stopping(&mut self) {
        self.note("stopping");
    }

    pub(crate) fn handle(&mut self, number: u32) -> u32 {
        self.handled += 1;
        self.note(&number.to_string());
        self.handled
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn panic(&mut self) {
        panic!("dropped the hammer");
    }

    pub(crate) async fn panic_async(&mut self) {
        yield_now().await;
        panic!("dropped the hammer");
    }

    pub(crate) fn fail(&mut self, ctx: &mut Ctx<Self>) {
        ctx.fail("worn out");
    }

    pub(crate) fn stop(&mut self, ctx: &mut Ctx<Self>) {
        ctx.stop();
    }

    fn note(&self, what: &str) {
        // The test may have heard enough.
        self.log.send(format!("{} {what}", self.name)).ok();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.note("dropped");
    }
}

/// What a boss is to be like.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) restart: Restart,
    pub(crate) strategy: Strategy,
    pub(crate) intensity: u32,
    pub(crate) shard: u16,
    pub(crate) log: Log,
    pub(crate) exits: mpsc::Sender<ChildExit>,
}

pub(crate) struct Boss {
    plan: Plan,
}

#[actor]
impl Boss {
    #[on(started)]
    fn started(&mut self, ctx: &mut Ctx<Self>) {
        ctx.set_strategy(self.plan.strategy);
    }

    pub(crate) async fn hire(
        &mut self,
        name: &'static str,
        ctx: &mut Ctx<Self>,
    ) -> Result<Addr<Worker>, SpawnError> {
        let log = self.plan.log.clone();
        let make = move || Worker {
            name,
            log: log.clone(),
            handled: 0,
            fails_to_start: false,
        };
        ctx.spawn_child(make)
            .restart(self.plan.restart)
            .intensity(self.plan.intensity, Duration::from_secs(60))
            .backoff(Duration::from_millis(1), Duration::from_millis(8))
            .on(self.plan.shard)
            .await
    }

    pub(crate) fn adopt(&mut self, name: &'static str, ctx: &mut Ctx<Self>) -> Addr<Worker> {
        ctx.adopt(Worker {
            name,
            log: self.plan.log.clone(),
            handled: 0,
            fails_to_start: false,
        })
    }

    pub(crate) async fn hire_badly(&mut self, ctx: &mut Ctx<Self>) -> Result<(), SpawnError> {
        let log = self.plan.log.clone();
        let make = move || Worker {
            name: "bad",
            log,
            handled: 0,
            fails_to_start: true,
        };
        ctx.spawn_child(make).on(self.plan.shard).await?;
        Ok(())
    }

    pub(crate) async fn hire_nowhere(&mut self, ctx: &mut Ctx<Self>) -> Result<(), SpawnError> {
        let make = || -> Worker { panic!("nobody applied") };
        let error = ctx.spawn_child(make).await.unwrap_err();
        assert!(error.is_panic(), "{error}");
        let make = || -> Worker { unreachable!("there is no such place") };
        ctx.spawn_child(make).on(999).await?;
        Ok(())
    }

    pub(crate) fn children(&mut self, ctx: &mut Ctx<Self>) -> usize {
        ctx.children().len()
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        // The test waits for it.
        self.plan.log.send("boss waits".to_owned()).unwrap();
        gate.await.ok();
    }

    pub(crate) fn panic(&mut self) {
        panic!("the boss is gone");
    }

    #[on(child_exit)]
    fn child_exit(&mut self, exit: ChildExit) {
        // The test may have heard enough.
        self.plan.exits.send(exit).ok();
    }
}

/// A boss and what is heard of its children.
pub(crate) struct Firm {
    pub(crate) boss: Addr<Boss>,
    pub(crate) log: mpsc::Receiver<String>,
    pub(crate) exits: mpsc::Receiver<ChildExit>,
}

impl Firm {
    pub(crate) fn new(system: &System, change: impl FnOnce(&mut Plan)) -> Self {
        let ((log, heard), (exits, heard_exits)) = (mpsc::channel(), mpsc::channel());
        let mut plan = Plan {
            restart: Restart::OnFailure,
            strategy: Strategy::OneForOne,
            intensity: 3,
            shard: last_shard(system),
            log,
            exits,
        };
        change(&mut plan);
        let boss = system.block_on(system.spawn_on(0, move || Boss { plan }));
        Self {
            boss: boss.unwrap(),
            log: heard,
            exits: heard_exits,
        }
    }

    pub(crate) fn hire(&self, system: &System, name: &'static str) -> Addr<Worker> {
        system.block_on(self.boss.hire(name).into_future()).unwrap()
    }

    /// The next things in the log.
    #[track_caller]
    pub(crate) fn expect(&self, what: &[&str]) {
        let heard: Vec<_> = what.iter().map(|_| hear(&self.log)).collect();
        assert_eq!(heard, what);
    }
}

#[test]
fn a_child_that_fails_is_restarted_with_its_address_and_its_mailbox() {
    on_shards(&[1, 2, 4], |system| {
        for how in 0..3 {
            let firm = Firm::new(system, |_| ());
            let worker = firm.hire(system, "a");
            let (open, gate) = oneshot::channel();
            worker.wait(gate).try_tell().unwrap();
            worker.handle(1).try_tell().unwrap();
            match how {
                0 => worker.panic().try_tell().unwrap(),
                1 => worker.panic_async().try_tell().unwrap(),
                _ => worker.fail().try_tell().unwrap(),
            }
            for number in 2..10 {
                worker.handle(number).try_tell().unwrap();
            }
            open.send(()).unwrap();
            // The one it failed at is gone; the others are handled once, in order, by the next incarnation.
            firm.expect(&["a start 0", "a 1", "a dropped", "a start 1"]);
            for number in 2..10 {
                assert_eq!(hear(&firm.log), format!("a {number}"));
            }
            let handled = system.block_on(worker.handle(10).into_future());
            assert_eq!(handled.unwrap(), 9, "a new state");
            let exit = hear(&firm.exits);
            assert_eq!(exit.outcome, ChildOutcome::Restarts, "{exit}");
            assert_eq!(exit.down.id, Addr::actor_id(worker));
            assert!(exit.down.reason.is_failure());
            assert_eq!(
                system.block_on(firm.boss.children().into_future()).unwrap(),
                1
            );
        }
        assert_eq!(counts(system).restarts, 3);
    });
}

#[test]
fn a_failure_at_once_restarts_too() {
    on_shards(&[1, 2], |system| {
        let firm = Firm::new(system, |_| ());
        let worker = firm.hire(system, "a");
        let asked = system.run_on(last_shard(system), move || async move {
            yield_now().await;
            yield_now().await;
            let failed = worker.panic().await;
            // Sent while it is being restarted.
            (
                failed.unwrap_err().panic().is_some(),
                worker.handle(1).await,
            )
        });
        assert!(asked.0);
        assert_eq!(asked.1.unwrap(), 1);
        firm.expect(&["a start 0", "a dropped", "a start 1", "a 1"]);
    });
}

#[test]
fn a_stop_or_a_kill_from_outside_ends_a_child_for_good() {
    on_shards(&[1, 2], |system| {
        for restart in [Restart::Never, Restart::OnFailure, Restart::Always] {
            let firm = Firm::new(system, |plan| plan.restart = restart);
            let (one, two) = (firm.hire(system, "a"), firm.hire(system, "b"));
            let down = Addr::watch(one);
            Addr::stop(one);
            assert!(system.block_on(down).reason.is_orderly());
            let down = Addr::watch(two);
            Addr::kill(two);
            assert!(matches!(system.block_on(down).reason, ExitReason::Killed));
            for worker in [one, two] {
                let exit = hear(&firm.exits);
                assert_eq!(exit.down.id, Addr::actor_id(worker));
                assert_eq!(exit.outcome, ChildOutcome::Ended);
            }
            assert_eq!(
                system.block_on(firm.boss.children().into_future()).unwrap(),
                0
            );
        }
        assert_eq!(counts(system).restarts, 0);
    });
}

#[test]
fn only_always_restarts_a_child_that_stops_itself() {
    on_shards(&[1, 2], |system| {
        let firm = Firm::new(system, |plan| plan.restart = Restart::Always);
        let worker = firm.hire(system, "a");
        let (open, gate) = oneshot::channel();
        worker.wait(gate).try_tell().unwrap();
        worker.stop().try_tell().unwrap();
        worker.handle(1).try_tell().unwrap();
        open.send(()).unwrap();
        // It takes messages all the time. Which incarnation handles them is open, but not the order.
        system.block_on(worker.handle(2).into_future()).unwrap();
        let log: Vec<String> = std::iter::from_fn(|| Some(hear(&firm.log)))
            .take_while(|line| line != "a start 1")
            .collect();
        assert!(log.contains(&"a stopping".to_owned()), "{log:?}");
        system.block_on(worker.handle(3).into_future()).unwrap();

        let firm = Firm::new(system, |_| ());
        let worker = firm.hire(system, "a");
        worker.stop().try_tell().unwrap();
        let exit = hear(&firm.exits);
        assert_eq!(exit.outcome, ChildOutcome::Ended, "{exit}");
    });
}

#[test]
fn a_child_that_is_never_restarted_takes_nobody_with_it() {
    on_shards(&[1, 2], |system| {
        let firm = Firm::new(system, |plan| plan.restart = Restart::Never);
        let worker = firm.hire(system, "a");
        let error = system.block_on(worker.panic().into_future()).unwrap_err();
        assert!(error.panic().is_some());
        let exit = hear(&firm.exits);
        assert_eq!(exit.outcome, ChildOutcome::Ended);
        assert_eq!(
            system.block_on(firm.boss.children().into_future()).unwrap(),
            0
        );
    });
}

#[test]
fn a_child_that_fails_too_often_takes_its_parent_with_it() {
    on_shards(&[1, 2, 4], |system| {
        let firm = Firm::new(system, |plan| plan.intensity = 2);
        let worker = firm.hire(system, "a");
        let down = Addr::watch(firm.boss);
        let gone = Addr::watch(worker);
        for _ in 0..3 {
            worker.panic().try_tell().unwrap();
        }
        let gone = system.block_on(gone);
        let ExitReason::RestartLimit(limit) = &gone.reason else {
            panic!("{gone}");
        };
        assert_eq!(limit.restarts, 2);
        assert!(
            gone.to_string().contains("restarted 2 times within 60s"),
            "{gone}"
        );
        let down = system.block_on(down);
        let ExitReason::ChildFailed(child) = &down.reason else {
            panic!("{down}");
        };
        assert_eq!(child.id, Addr::actor_id(worker));
        assert_eq!(
            down.reason
                .panic()
                .map(|panic| panic.text().to_owned())
                .as_deref(),
            Some("dropped the hammer")
        );
        assert_eq!(counts(system).actors, 0);
        assert_eq!(counts(system).restarts, 2);
    });
}

#[test]
fn a_parent_that_waits_is_cut_off_by_the_failure_of_a_child() {
    on_shards(&[1, 2], |system| {
        let firm = Firm::new(system, |plan| plan.intensity = 0);
        let worker = firm.hire(system, "a");
        let (_open, gate) = oneshot::channel();
        let mut waits = firm.boss.wait(gate).into_future();
        assert!(poll_once(&mut waits).is_pending());
        firm.expect(&["a start 0", "boss waits"]);
        worker.panic().try_tell().unwrap();
        assert!(matches!(system.block_on(waits), Err(CallError::Killed(_))));
        system.block_on(Addr::stopped(firm.boss));
    });
}

#[test]
fn a_child_that_does_not_start_is_the_error_of_its_spawn_and_leaves_nothing() {
    on_shards(&[1, 2], |system| {
        let firm = Firm::new(system, |_| ());
        let error = system.block_on(firm.boss.hire_badly().into_future());
        let text = error.unwrap_err().to_string();
        let shard = last_shard(system);
        assert_eq!(
            text,
            format!("Worker did not start on shard {shard}: no tools")
        );
        let error = system.block_on(firm.boss.hire_nowhere().into_future());
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("Worker did not start on shard 999: the system has"),
            "{text}"
        );
        assert_eq!(
            system.block_on(firm.boss.children().into_future()).unwrap(),
            0
        );
        assert!(firm.exits.try_recv().is_err(), "its spawner knows");
    });
}

/// Which of three children start anew when the second one fails.
fn check_strategy(strategy: Strategy, anew: &'static [&'static str]) {
    on_shards(&[1, 2, 4], move |system| {
        let firm = Firm::new(system, |plan| plan.strategy = strategy);
        let workers = ["a", "b", "c"].map(|name| firm.hire(system, name));
        firm.expect(&["a start 0", "b start 0", "c start 0"]);
        workers[1].panic().try_tell().unwrap();
        for (number, worker) in (0..).zip(workers) {
            // Waits in the mailbox of those that are being restarted.
            worker.handle(number).try_tell().unwrap();
        }
        let mut log: Vec<String> = Vec::new();
        while ["a 0", "b 1", "c 2"]
            .iter()
            .any(|line| !log.contains(&(*line).to_owned()))
            || log.iter().filter(|line| line.contains("start 1")).count() < anew.len()
        {
            log.push(hear(&firm.log));
        }
        let starts: Vec<_> = log.iter().filter(|line| line.contains("start")).collect();
        let expected: Vec<_> = anew.iter().map(|name| format!("{name} start 1")).collect();
        assert_eq!(starts, expected.iter().collect::<Vec<_>>(), "{log:?}");
        // Those that did not fail stop in order, the last one first.
        let stops: Vec<_> = log
            .iter()
            .filter(|line| line.contains("stopping"))
            .cloned()
            .collect();
        let expected = anew.iter().rev().filter(|name| **name != "b");
        let expected: Vec<_> = expected.map(|name| format!("{name} stopping")).collect();
        assert_eq!(stops, expected, "{log:?}");
        for worker in workers {
            assert_eq!(system.block_on(Addr::state(worker)), LifeState::Running);
        }
    });
}

#[test]
fn one_for_one_restarts_the_one_that_failed() {
    check_strategy(Strategy::OneForOne, &["b"]);
}

#[test]
fn one_for_all_restarts_all_of_them_in_their_order() {
    check_strategy(Strategy::OneForAll, &["a", "b", "c"]);
}

#[test]
fn rest_for_one_restarts_those_that_were_started_later_too() {
    check_strategy(Strategy::RestForOne, &["b", "c"]);
}

#[test]
fn a_stop_while_a_child_waits_to_be_restarted_handles_what_it_had_accepted() {
    on_shards(&[1, 2], |system| {
        let firm = Firm::new(system, |_| ());
        let worker = firm.hire(system, "a");
        worker.panic().try_tell().unwrap();
        for number in 0..5 {
            worker.handle(number).try_tell().unwrap();
        }
        Addr::stop(worker);
        let down = system.block_on(Addr::watch(worker));
        let log: Vec<String> = std::iter::from_fn(|| firm.log.try_recv().ok()).collect();
        assert!(!down.reason.is_failure(), "{down}: {log:?}");
        for number in 0..5 {
            assert!(log.contains(&format!("a {number}")), "{log:?}");
        }
        assert_eq!(counts(system).dead_letters, 0);
    });
}
