//! Actors that were spawned and have done nothing yet: their tasks sleep from the start.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use futures_channel::oneshot;
use greenroom::LifeState;
use greenroom::prelude::*;
use greenroom::runtime::{current_shard, yield_now};
use greenroom_tests::{bounded, on_shards, poll_once, start};

/// Says when it is dropped, and where.
struct Resting {
    log: mpsc::Sender<Option<greenroom::ShardId>>,
    kept: Vec<Reply<u32>>,
    handled: u32,
}

#[actor]
impl Resting {
    pub(crate) fn count(&mut self) -> u32 {
        self.handled += 1;
        self.handled
    }

    pub(crate) async fn count_slowly(&mut self) -> u32 {
        yield_now().await;
        self.handled += 1;
        self.handled
    }

    pub(crate) fn keep(&mut self, reply: Reply<u32>) {
        self.kept.push(reply);
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        // The test may have heard enough.
        self.log.send(current_shard()).ok();
    }
}

fn resting(log: &mpsc::Sender<Option<greenroom::ShardId>>) -> Resting {
    Resting {
        log: log.clone(),
        kept: Vec::new(),
        handled: 0,
    }
}

#[test]
fn an_actor_without_a_start_hook_answers_in_the_turn_in_which_it_was_spawned() {
    on_shards(&[1], |system| {
        system.run_on(0, || async {
            let (log, _heard) = mpsc::channel();
            let actor = greenroom::spawn(resting(&log));
            let mut first = actor.count().into_future();
            assert!(poll_once(&mut first).is_ready(), "the asker had to wait");
            let mut slow = actor.count_slowly().into_future();
            assert!(poll_once(&mut slow).is_pending());
            assert_eq!(slow.await.unwrap(), 2);
            assert_eq!(actor.count().await.unwrap(), 3);
        });
    });
}

#[test]
fn an_actor_without_a_start_hook_runs_as_soon_as_it_is_spawned() {
    on_shards(&[2], |system| {
        let (log, _heard) = mpsc::channel();
        let actor = system.run_on(1, move || async move { greenroom::spawn(resting(&log)) });
        let snapshot = system.snapshot();
        let states: Vec<_> = snapshot.actors().map(|actor| actor.state).collect();
        assert_eq!(states, [LifeState::Running]);
        Addr::stop(actor);
    });
}

#[test]
fn an_actor_that_was_never_polled_ends_in_every_way_and_is_dropped_at_home() {
    let ways: [fn(Addr<Resting>); 4] = [
        |actor| Addr::stop(actor),
        |actor| Addr::stop_now(actor),
        |actor| Addr::kill(actor),
        |actor| {
            Addr::stop(actor);
            Addr::kill(actor);
        },
    ];
    on_shards(&[1, 2], move |system| {
        let home = greenroom_tests::last_shard(system);
        for end in ways {
            // Nothing lies between the spawn and the end but the call itself.
            let (log, heard) = mpsc::channel();
            system.run_on(home, move || async move {
                let actor = greenroom::spawn(resting(&log));
                end(actor);
                Addr::stopped(actor).await;
            });
            assert_eq!(heard.recv().unwrap(), Some(home.into()));
            heard.recv().unwrap_err();
            // And here the end comes from elsewhere.
            let (log, heard) = mpsc::channel();
            let actor = system.run_on(home, move || async move { greenroom::spawn(resting(&log)) });
            end(actor);
            system.block_on(Addr::stopped(actor));
            assert_eq!(heard.recv().unwrap(), Some(home.into()));
            heard.recv().unwrap_err();
        }
    });
}

#[test]
fn a_kill_of_an_actor_whose_task_never_ran_reaches_those_it_owes_an_answer() {
    on_shards(&[2], |system| {
        let (log, _heard) = mpsc::channel();
        let actor = system.run_on(1, move || async move { greenroom::spawn(resting(&log)) });
        let error = system.run_on(0, move || async move {
            let mut owed = actor.keep().into_future();
            assert!(poll_once(&mut owed).is_pending());
            // Handled where it arrived: the actor was idle.
            assert_eq!(actor.count().await.unwrap(), 1);
            Addr::kill(actor);
            owed.await.unwrap_err()
        });
        assert!(matches!(error, CallError::Killed(_)), "{error}");
    });
}

#[test]
fn a_system_that_ends_drops_actors_that_were_never_polled_on_their_shards() {
    for shuts_down in [true, false] {
        bounded("the end of a system of sleepers", move || {
            let system = start(2);
            let (log, heard) = mpsc::channel();
            for shard in 0..2 {
                let log = log.clone();
                system.run_on(shard, move || async move {
                    for _ in 0..100 {
                        greenroom::spawn(resting(&log));
                    }
                });
            }
            drop(log);
            if shuts_down {
                let report = system.shutdown(Duration::from_secs(30));
                assert_eq!((report.stopped(), report.killed().len()), (200, 0));
            } else {
                drop(system);
            }
            let mut homes: Vec<_> = heard
                .iter()
                .map(|shard| shard.expect("dropped on a shard").index())
                .collect();
            homes.sort_unstable();
            let expected: Vec<_> = [0, 1].iter().flat_map(|shard| [*shard; 100]).collect();
            assert_eq!(homes, expected);
        });
    }
}

/// Notes the order in which start hooks run.
struct Starting {
    number: u32,
    order: Rc<RefCell<Vec<u32>>>,
}

#[actor]
impl Starting {
    pub(crate) fn note(&mut self, number: u32) {
        self.order.borrow_mut().push(number);
    }

    #[on(started)]
    fn begin(&mut self) {
        self.order.borrow_mut().push(self.number);
    }
}

#[test]
fn start_hooks_run_in_the_order_of_the_spawns_and_before_any_message() {
    on_shards(&[1], |system| {
        let order = system.run_on(0, || async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let actors: Vec<_> = (0..5)
                .map(|number| {
                    let order = order.clone();
                    let actor = greenroom::spawn(Starting { number, order });
                    actor.note(10 + number).try_tell().unwrap();
                    actor
                })
                .collect();
            for actor in actors {
                Addr::stop(actor);
                Addr::stopped(actor).await;
            }
            order.take()
        });
        for number in 0..5 {
            let place = |what| order.iter().position(|noted| *noted == what);
            assert!(place(number) < place(10 + number), "{order:?}");
        }
        let starts: Vec<_> = order.into_iter().filter(|noted| *noted < 10).collect();
        assert_eq!(starts, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_child_that_was_never_polled_stops_with_its_parent() {
    struct Parent {
        log: mpsc::Sender<Option<greenroom::ShardId>>,
        ready: Option<oneshot::Sender<()>>,
    }

    #[actor]
    impl Parent {
        pub(crate) fn adopt_all(&mut self, ctx: &mut Ctx<Self>) {
            for _ in 0..3 {
                ctx.adopt(resting(&self.log));
            }
            self.ready.take().map(|ready| ready.send(()));
        }
    }

    on_shards(&[1, 2], |system| {
        let (log, heard) = mpsc::channel();
        let (ready, adopted) = oneshot::channel();
        let make = move || Parent {
            log,
            ready: Some(ready),
        };
        let parent = system
            .block_on(system.spawn_on(greenroom_tests::last_shard(system), make))
            .unwrap();
        parent.adopt_all().try_tell().unwrap();
        system.block_on(adopted).unwrap();
        Addr::stop(parent);
        system.block_on(Addr::stopped(parent));
        assert_eq!(heard.iter().count(), 3);
    });
}
