//! A panic in an actor ends that actor, and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::task::Poll;

use futures_channel::oneshot;
use greenroom::HandlerRan;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom::{ExitReason, News, Topic};
use greenroom_tests::{Ledger, counts, hear, last_shard, ledger, on_shards, poll_once};

/// Panics when it is dropped.
#[derive(Debug)]
struct Bomb {
    defused: bool,
}

impl Bomb {
    const LIVE: Self = Self { defused: false };
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(
            self.defused || std::thread::panicking(),
            "the bomb went off"
        );
    }
}

/// Kills an actor when it is dropped.
#[derive(Debug)]
struct Fuse(Addr<Ledger<1>>);

impl Drop for Fuse {
    fn drop(&mut self) {
        Addr::kill(self.0);
    }
}

#[derive(Default)]
struct Fragile {
    bomb: Option<Bomb>,
    kept: Vec<Reply<u64>>,
}

#[actor(mailbox = 16)]
impl Fragile {
    pub(crate) fn arm(&mut self) {
        self.bomb = Some(Bomb::LIVE);
    }

    pub(crate) fn value(&self, value: u64) -> u64 {
        value
    }

    pub(crate) fn fail(&self) {
        panic!("fragile");
    }

    pub(crate) fn handle_bomb(&mut self, mut bomb: Bomb) -> u64 {
        bomb.defused = true;
        1
    }

    pub(crate) fn handle_fuse(&mut self, fuse: Fuse) {
        drop(fuse);
    }

    pub(crate) fn make_bomb(&self) -> Bomb {
        Bomb::LIVE
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) async fn wait_with_fuse(&mut self, fuse: Fuse, gate: oneshot::Receiver<()>) {
        gate.await.ok();
        drop(fuse);
    }

    pub(crate) async fn wait_with_bomb(&mut self, gate: oneshot::Receiver<()>) {
        let mut bomb = Bomb::LIVE;
        gate.await.ok();
        bomb.defused = true;
    }

    pub(crate) fn keep(&mut self, reply: Reply<u64>) {
        self.kept.push(reply);
    }
}

fn fragile(system: &System) -> Addr<Fragile> {
    system
        .block_on(system.spawn_on(last_shard(system), Fragile::default))
        .unwrap()
}

/// A neighbour on the same shard answers, and a new actor can be spawned there.
fn check_shard_lives(system: &System, neighbour: Addr<Ledger<1>>) {
    assert_eq!(
        system.block_on(neighbour.note(0, 5).into_future()).unwrap(),
        5
    );
    assert_eq!(
        system
            .block_on(fragile(system).value(3).into_future())
            .unwrap(),
        3
    );
}

fn check(body: impl Fn(&System, Addr<Fragile>) + Send + Sync + 'static) {
    on_shards(&[1, 2], move |system| {
        let neighbour = ledger(system, last_shard(system));
        body(system, fragile(system));
        check_shard_lives(system, neighbour);
    });
}

#[test]
fn a_panic_in_a_handler_ends_its_actor_only() {
    check(|system, fragile| {
        assert!(
            system
                .block_on(fragile.fail().into_future())
                .unwrap_err()
                .panic()
                .is_some()
        );
        system.block_on(Addr::stopped(fragile));
        assert_eq!(counts(system).panics, 1);
    });
}

#[test]
fn a_panic_in_the_drop_of_the_state_ends_its_actor_only() {
    for end in [Addr::stop as fn(Addr<Fragile>), Addr::kill, |fragile| {
        fragile.fail().try_tell().unwrap();
    }] {
        check(move |system, fragile| {
            system.block_on(fragile.arm().into_future()).unwrap();
            end(fragile);
            system.block_on(Addr::stopped(fragile));
        });
    }
}

#[test]
fn asks_that_wait_while_a_killed_state_panics_in_its_drop_hear_that_their_handlers_did_not_run() {
    check(|system, fragile| {
        system.block_on(fragile.arm().into_future()).unwrap();
        let (_open, gate) = oneshot::channel();
        let mut runs = fragile.wait(gate).into_future();
        assert!(poll_once(&mut runs).is_pending());
        let mut waits: Vec<_> = (0..3)
            .map(|value| fragile.value(value).into_future())
            .collect();
        assert!(waits.iter_mut().all(|ask| poll_once(ask).is_pending()));
        system.block_on(greenroom_tests::settle(system, last_shard(system)));
        Addr::kill(fragile);
        let error = system.block_on(runs).unwrap_err();
        assert!(matches!(error, CallError::Killed(_)), "{error}");
        for ask in waits {
            let error = system.block_on(ask).unwrap_err();
            assert_eq!(error.handler_ran(), HandlerRan::No, "{error}");
        }
    });
}

#[test]
fn a_local_of_a_killed_handler_that_panics_in_its_drop_ends_its_actor_only() {
    check(|system, fragile| {
        let (_open, gate) = oneshot::channel();
        let mut runs = fragile.wait_with_bomb(gate).into_future();
        assert!(poll_once(&mut runs).is_pending());
        system.block_on(greenroom_tests::settle(system, last_shard(system)));
        Addr::kill(fragile);
        let error = system.block_on(runs).unwrap_err();
        assert_eq!(error.handler_ran(), HandlerRan::Yes, "{error}");
        system.block_on(Addr::stopped(fragile));
    });
}

#[test]
fn a_message_that_panics_in_its_drop_is_accounted_for_like_any_other() {
    check(|system, fragile| {
        let (open, gate) = oneshot::channel();
        system.block_on(fragile.wait(gate).tell()).unwrap();
        let mut asks: Vec<_> = (0..3)
            .map(|_| fragile.handle_bomb(Bomb::LIVE).into_future())
            .collect();
        assert!(asks.iter_mut().all(|ask| poll_once(ask).is_pending()));
        fragile.handle_bomb(Bomb::LIVE).try_tell().unwrap();
        system.block_on(greenroom_tests::settle(system, last_shard(system)));
        Addr::kill(fragile);
        for ask in asks {
            let error = system.block_on(ask).unwrap_err();
            assert_eq!(error.handler_ran(), HandlerRan::No, "{error}");
        }
        // One that comes after the end.
        let error = system
            .block_on(fragile.handle_bomb(Bomb::LIVE).into_future())
            .unwrap_err();
        assert_eq!(error.handler_ran(), HandlerRan::No, "{error}");
        assert_eq!(counts(system).dead_letters, 5);
        drop(open);
    });
}

#[test]
fn a_reply_value_that_panics_in_its_drop_does_not_end_the_shard() {
    check(|system, fragile| {
        // The answer may be here before the ask is dropped: then the bomb goes off on this thread.
        drop(catch_unwind(AssertUnwindSafe(|| {
            let mut ask = fragile.make_bomb().into_future();
            drop(poll_once(&mut ask));
            drop(ask);
        })));
        for shard in system.shards() {
            system.run_on(shard, move || async move {
                let mut ask = fragile.make_bomb().into_future();
                // The answer may be here at once, and an actor ended by such a drop has stopped.
                drop(catch_unwind(AssertUnwindSafe(|| drop(poll_once(&mut ask)))));
                drop(catch_unwind(AssertUnwindSafe(|| drop(ask))));
                yield_now().await;
            });
        }
    });
}

#[test]
fn a_kill_inside_the_drop_of_a_message_leaves_the_others_their_fate() {
    on_shards(&[1, 2], |system| {
        let shard = last_shard(system);
        let (fragile, victim) = (fragile(system), ledger(system, shard));
        let (_open, gate) = oneshot::channel();
        let mut runs = fragile.wait_with_fuse(Fuse(victim), gate).into_future();
        assert!(poll_once(&mut runs).is_pending());
        let another: Addr<Ledger<1>> = ledger(system, shard);
        let mut kills = fragile.handle_fuse(Fuse(another)).into_future();
        assert!(poll_once(&mut kills).is_pending());
        let mut waits = fragile.value(1).into_future();
        assert!(poll_once(&mut waits).is_pending());
        system.block_on(greenroom_tests::settle(system, shard));
        Addr::kill(fragile);
        let error = system.block_on(runs).unwrap_err();
        assert!(matches!(error, CallError::Killed(_)), "{error}");
        for error in [
            system.block_on(kills).unwrap_err(),
            system.block_on(waits).unwrap_err(),
        ] {
            assert!(error.is_stopped(), "{error}");
        }
        for victim in [victim, another] {
            system.block_on(Addr::stopped(victim));
        }
    });
}

#[test]
fn senders_that_wait_while_the_actor_panics_get_their_arguments_back() {
    on_shards(&[1], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 0);
        let (open, gate) = oneshot::channel();
        let errors = system.run_on(0, move || async move {
            ledger.wait(gate).tell().await.unwrap();
            yield_now().await;
            ledger
                .fail("in front of a line".to_owned())
                .tell()
                .await
                .unwrap();
            let mut tell = ledger.note(1, 2).tell();
            assert!(poll_once(&mut tell).is_pending());
            let mut ask = ledger.note(3, 4).into_future();
            assert!(poll_once(&mut ask).is_pending());
            open.send(()).unwrap();
            Addr::stopped(ledger).await;
            (
                tell.await.err().and_then(greenroom::SendError::into_args),
                ask.await.unwrap_err().handler_ran(),
            )
        });
        // The first in line may have entered when the panicking message left.
        assert!(
            matches!(errors, (Some((1, 2)) | None, HandlerRan::No)),
            "{errors:?}"
        );
    });
}

#[test]
fn replies_kept_by_an_actor_that_panics_are_answered() {
    check(|system, fragile| {
        let mut kept = fragile.keep().into_future();
        assert!(poll_once(&mut kept).is_pending());
        fragile.fail().try_tell().unwrap();
        let error = system.block_on(kept).unwrap_err();
        assert_eq!(error.handler_ran(), HandlerRan::Yes, "{error}");
    });
}

#[test]
fn a_task_that_panics_leaves_the_actors_of_its_shard_alone() {
    on_shards(&[1, 2], |system| {
        let shard = last_shard(system);
        let ledger: Addr<Ledger<1>> = ledger(system, shard);
        let (seen, sees) = mpsc::channel();
        let task = system.runtime().spawn_on(shard, move || async move {
            seen.send(()).unwrap();
            panic!("a task");
        });
        let error: greenroom::runtime::JoinError = system.block_on(task).unwrap_err();
        assert!(error.is_panic());
        hear(&sees);
        assert_eq!(system.block_on(ledger.note(0, 1).into_future()).unwrap(), 1);
    });
}

/// Panics when it is woken.
struct Grenade;

impl std::task::Wake for Grenade {
    fn wake(self: std::sync::Arc<Self>) {
        panic!("pulled");
    }
}

#[test]
fn an_askers_waker_that_panics_does_not_end_the_actor_that_answers() {
    on_shards(&[1, 2], |system| {
        let ledger = ledger::<8>(system, last_shard(system));
        let (entered, has_entered) = mpsc::channel();
        let (release, until) = mpsc::channel();
        system
            .block_on(ledger.block(entered, until).tell())
            .unwrap();
        hear(&has_entered);
        let waker = std::sync::Arc::new(Grenade).into();
        let mut asks: Vec<_> = (0..3)
            .map(|_| Box::pin(ledger.seen().into_future()))
            .collect();
        for ask in &mut asks {
            let polled = ask
                .as_mut()
                .poll(&mut std::task::Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        release.send(()).unwrap();
        for ask in asks {
            assert!(system.block_on(ask).is_ok());
        }
        assert_eq!(counts(system).panics, 0);
    });
}

#[test]
fn a_waker_that_panics_on_the_shard_of_the_actor_does_not_end_it_either() {
    on_shards(&[1, 2], |system| {
        let home = last_shard(system);
        let ledger = ledger::<8>(system, home);
        system.run_on(home, move || async move {
            let waker = std::sync::Arc::new(Grenade).into();
            let mut ask = Box::pin(ledger.note_slowly(0, 1).into_future());
            let mut poll = || {
                let mut cx = std::task::Context::from_waker(&waker);
                ask.as_mut().poll(&mut cx)
            };
            assert!(poll().is_pending());
            for _ in 0..10_000 {
                yield_now().await;
                if let Poll::Ready(answer) = poll() {
                    assert_eq!(answer.unwrap(), 1);
                    return;
                }
            }
            panic!("there is no answer");
        });
        assert_eq!(counts(system).panics, 0);
        assert!(system.block_on(ledger.seen().into_future()).is_ok());
    });
}

/// Hears numbers.
struct Listener;

#[actor]
impl Listener {
    pub(crate) fn listen(&mut self, topic: Topic<u32>, ctx: &mut Ctx<Self>) {
        ctx.subscribe(&topic, 4, |me, news| {
            assert_ne!(news, News::Value(13), "an unlucky number");
            me.hear(news)
        });
    }

    pub(crate) fn hear(&mut self, _: News<u32>) {}
}

#[test]
fn a_subscription_whose_call_panics_ends_its_actor() {
    on_shards(&[1, 2], |system| {
        let topic: Topic<u32> = Topic::new(system.handle());
        let listener = system.spawn_on(last_shard(system), || Listener);
        let listener = system.block_on(listener).unwrap();
        let listening = listener.listen(topic.clone()).into_future();
        system.block_on(listening).unwrap();
        let down = Addr::watch(listener);
        topic.publish(12);
        topic.publish(13);
        let reason = system.block_on(down).reason;
        assert!(matches!(reason, ExitReason::Panicked(_)), "{reason}");
        assert!(reason.panic().unwrap().text().contains("unlucky"));
    });
}
