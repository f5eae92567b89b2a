//! Parents and children: who ends before whom.

use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::{ExitReason, Restart};
use greenroom_tests::{bounded, hear, on_shards};

use crate::supervision::{Firm, Log, Worker};

#[test]
fn children_end_before_their_parent_in_the_reverse_order_of_their_start() {
    on_shards(&[1, 2, 4], |system| {
        for how in 0..2 {
            let firm = Firm::new(system, |_| ());
            let workers = ["a", "b", "c"].map(|name| firm.hire(system, name));
            let down = Addr::watch(firm.boss);
            match how {
                0 => Addr::stop(firm.boss),
                _ => firm.boss.panic().try_tell().unwrap(),
            }
            system.block_on(down);
            firm.expect(&["a start 0", "b start 0", "c start 0"]);
            for name in ["c", "b", "a"] {
                firm.expect(&[&format!("{name} stopping"), &format!("{name} dropped")]);
            }
            for worker in workers {
                system.block_on(Addr::stopped(worker));
            }
        }
    });
}

#[test]
fn children_of_a_killed_parent_are_killed() {
    on_shards(&[1, 2, 4], |system| {
        let firm = Firm::new(system, |_| ());
        let worker = firm.hire(system, "a");
        let adopted = system.block_on(firm.boss.adopt("b").into_future()).unwrap();
        let (down, adopted) = (Addr::watch(worker), Addr::watch(adopted));
        Addr::kill(firm.boss);
        assert!(matches!(system.block_on(down).reason, ExitReason::Killed));
        assert!(matches!(
            system.block_on(adopted).reason,
            ExitReason::Killed
        ));
        let log: Vec<String> = firm.log.iter().collect();
        assert!(!log.iter().any(|line| line.contains("stopping")), "{log:?}");
    });
}

#[test]
fn a_restarted_parent_begins_without_children() {
    /// Hires one in its start hook.
    struct Foreman {
        starts: mpsc::Sender<usize>,
        log: Log,
    }

    #[actor]
    impl Foreman {
        #[on(started)]
        async fn started(&mut self, ctx: &mut Ctx<Self>) {
            let log = self.log.clone();
            let worker = Worker {
                name: "w",
                log,
                handled: 0,
                fails_to_start: false,
            };
            ctx.adopt(worker);
            self.starts.send(ctx.children().len()).unwrap();
        }

        pub(crate) fn panic(&mut self) {
            panic!("the foreman is gone");
        }
    }

    /// Has one foreman.
    struct Owner;

    #[actor]
    impl Owner {
        pub(crate) async fn found(
            &mut self,
            starts: mpsc::Sender<usize>,
            log: Log,
            ctx: &mut Ctx<Self>,
        ) -> Addr<Foreman> {
            // Written in place: it is a factory that can be called again all the same.
            let child = ctx.spawn_child(move || Foreman {
                starts: starts.clone(),
                log: log.clone(),
            });
            child.restart(Restart::OnFailure).await.unwrap()
        }
    }

    on_shards(&[1, 2], |system| {
        let ((starts, heard), (log, lines)) = (mpsc::channel(), mpsc::channel());
        let owner = system.block_on(system.spawn_on(0, || Owner)).unwrap();
        let foreman = system
            .block_on(owner.found(starts, log).into_future())
            .unwrap();
        assert_eq!(hear(&heard), 1);
        foreman.panic().try_tell().unwrap();
        assert_eq!(
            hear(&heard),
            1,
            "the child of the first incarnation is gone"
        );
        Addr::stop(owner);
        system.block_on(Addr::stopped(owner));
        let lines: Vec<String> = lines.iter().collect();
        assert_eq!(
            lines,
            [
                "w start 0",
                "w stopping",
                "w dropped",
                "w start 0",
                "w stopping",
                "w dropped"
            ]
        );
    });
}

#[test]
fn a_shutdown_stops_trees_from_the_top() {
    bounded("the shutdown", || {
        for shards in [1, 2, 4] {
            let system = greenroom_tests::start(shards);
            let firm = Firm::new(&system, |_| ());
            for name in ["a", "b"] {
                firm.hire(&system, name);
            }
            let report = system.shutdown(Duration::from_secs(20));
            assert_eq!((report.stopped(), report.killed().len()), (3, 0));
            let Firm { log, .. } = firm;
            let lines: Vec<String> = log.iter().skip(2).collect();
            assert_eq!(
                lines,
                ["b stopping", "b dropped", "a stopping", "a dropped"]
            );
        }
    });
}

#[test]
fn a_child_has_its_own_time_to_stop() {
    /// Has one child, with little time.
    struct Hasty;

    #[actor]
    impl Hasty {
        pub(crate) async fn hire(&mut self, log: Log, ctx: &mut Ctx<Self>) -> Addr<Worker> {
            let make = move || Worker {
                name: "slow",
                log,
                handled: 0,
                fails_to_start: false,
            };
            let child = ctx.spawn_child(make).grace(Duration::from_millis(5));
            child.await.unwrap()
        }
    }

    on_shards(&[1, 2], |system| {
        let (log, _lines) = mpsc::channel();
        let hasty = system.block_on(system.spawn_on(0, || Hasty)).unwrap();
        let worker = system.block_on(hasty.hire(log).into_future()).unwrap();
        let (_open, gate) = oneshot::channel();
        system.block_on(worker.wait(gate).tell()).unwrap();
        let (down, parent) = (Addr::watch(worker), Addr::watch(hasty));
        Addr::stop(hasty);
        let down = system.block_on(down);
        assert!(matches!(down.reason, ExitReason::GraceExpired(_)), "{down}");
        let parent = system.block_on(parent);
        assert!(parent.reason.is_orderly(), "{parent}");
    });
}
