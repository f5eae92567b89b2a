//! Actors that watch other actors.

use std::sync::mpsc;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::{ActorId, Down};
use greenroom_tests::{Ledger, hear, last_shard, ledger, on_shards};

/// Tells a test of each end it hears of.
struct Guard {
    heard: mpsc::Sender<Down>,
}

#[actor]
impl Guard {
    pub(crate) fn watch(&mut self, other: Addr<Ledger<1>>, ctx: &mut Ctx<Self>) {
        ctx.watch(other);
    }

    pub(crate) fn unwatch(&mut self, other: Addr<Ledger<1>>, ctx: &mut Ctx<Self>) {
        ctx.unwatch(other);
    }

    pub(crate) async fn wait(&mut self, entered: mpsc::Sender<()>, gate: oneshot::Receiver<()>) {
        entered.send(()).unwrap();
        gate.await.ok();
    }

    pub(crate) fn id(&self, ctx: &mut Ctx<Self>) -> ActorId {
        ctx.id()
    }

    #[on(down)]
    fn down(&mut self, down: Down) {
        self.heard.send(down).unwrap();
    }
}

/// Watches, and does not care.
#[derive(Default)]
struct Deaf;

#[actor]
impl Deaf {
    pub(crate) fn watch(&mut self, other: Addr<Ledger<1>>, ctx: &mut Ctx<Self>) {
        ctx.watch(other);
    }
}

fn guard(system: &System) -> (Addr<Guard>, mpsc::Receiver<Down>) {
    let (heard, downs) = mpsc::channel();
    let guard = system.block_on(system.spawn_on(0, move || Guard { heard }));
    (guard.unwrap(), downs)
}

#[test]
fn a_watching_actor_hears_once_however_often_it_watched() {
    on_shards(&[1, 2, 4], |system| {
        let (guard, downs) = guard(system);
        let other: Addr<Ledger<1>> = ledger(system, last_shard(system));
        for _ in 0..3 {
            system.block_on(guard.watch(other).into_future()).unwrap();
        }
        // Until the other shard has heard of it.
        system.block_on(greenroom_tests::settle(system, 0));
        system.block_on(greenroom_tests::settle(system, last_shard(system)));
        system
            .block_on(other.fail("out of paper".to_owned()).into_future())
            .ok();
        let down = hear(&downs);
        assert_eq!(down.id, Addr::actor_id(other));
        assert_eq!(
            down.reason.panic().map(greenroom::PanicReport::text),
            Some("out of paper")
        );
        assert!(downs.try_recv().is_err());
        assert_eq!(
            system.block_on(guard.id().into_future()).unwrap(),
            Addr::actor_id(guard)
        );
    });
}

#[test]
fn a_watching_actor_hears_of_the_dead_each_time_it_asks() {
    on_shards(&[1, 2, 4], |system| {
        let (guard, downs) = guard(system);
        let other: Addr<Ledger<1>> = ledger(system, last_shard(system));
        Addr::kill(other);
        system.block_on(Addr::stopped(other));
        for _ in 0..2 {
            system.block_on(guard.watch(other).into_future()).unwrap();
            assert_eq!(hear(&downs).id, Addr::actor_id(other));
        }
    });
}

#[test]
fn an_actor_that_does_not_watch_any_more_hears_nothing() {
    on_shards(&[1, 2, 4], |system| {
        let (guard, downs) = guard(system);
        let other: Addr<Ledger<1>> = ledger(system, last_shard(system));
        system.block_on(guard.watch(other).into_future()).unwrap();
        system.block_on(guard.unwatch(other).into_future()).unwrap();
        Addr::kill(other);
        system.block_on(Addr::stopped(other));
        // It was on its way, if it was.
        system.block_on(guard.id().into_future()).unwrap();
        system.block_on(system.drain());
        assert!(downs.try_recv().is_err());
    });
}

/// Ends go before messages, but not into a handler that runs.
#[test]
fn an_end_is_heard_before_the_messages_that_wait() {
    on_shards(&[1, 2], |system| {
        let (guard, downs) = guard(system);
        let other: Addr<Ledger<1>> = ledger(system, last_shard(system));
        let late: Addr<Ledger<1>> = ledger(system, last_shard(system));
        Addr::kill(late);
        system.block_on(Addr::stopped(late));
        system.block_on(guard.watch(other).into_future()).unwrap();
        let (open, gate) = oneshot::channel();
        let (entered, has_entered) = mpsc::channel();
        guard.wait(entered, gate).try_tell().unwrap();
        hear(&has_entered);
        guard.watch(late).try_tell().unwrap();
        Addr::kill(other);
        system.block_on(Addr::stopped(other));
        // The end has arrived: the shards have nothing else to do.
        system.block_on(greenroom_tests::settle(system, 0));
        assert!(downs.try_recv().is_err(), "a handler runs");
        open.send(()).unwrap();
        let heard = [hear(&downs).id, hear(&downs).id];
        assert_eq!(heard, [Addr::actor_id(other), Addr::actor_id(late)]);
    });
}

#[test]
fn an_end_that_nobody_handles_kills_nobody() {
    on_shards(&[1, 2], |system| {
        let deaf = system.block_on(system.spawn_on(0, Deaf::default)).unwrap();
        let other: Addr<Ledger<1>> = ledger(system, last_shard(system));
        system.block_on(deaf.watch(other).into_future()).unwrap();
        system
            .block_on(other.fail("gone".to_owned()).into_future())
            .ok();
        let next: Addr<Ledger<1>> = ledger(system, last_shard(system));
        system.block_on(deaf.watch(next).into_future()).unwrap();
    });
}

#[test]
fn watchers_that_end_take_their_watches_back() {
    on_shards(&[1, 2], |system| {
        let other: Addr<Ledger<1>> = ledger(system, last_shard(system));
        for _ in 0..200 {
            let deaf = system.block_on(system.spawn_on(0, Deaf::default)).unwrap();
            system.block_on(deaf.watch(other).into_future()).unwrap();
            Addr::stop(deaf);
            system.block_on(Addr::stopped(deaf));
        }
        let down = Addr::watch(other);
        Addr::stop(other);
        assert!(system.block_on(down).reason.is_orderly());
    });
}
