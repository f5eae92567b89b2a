//! What is asked in destructors, while a panic unwinds or an actor is being killed, is handled afterwards, and every
//! asker hears of its own handler's end and of no other's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom::prelude::*;
use greenroom::runtime::{spawn, yield_now};
use greenroom_tests::{counts, on_shards, poll_once};

/// Keeps the replies it is given.
#[derive(Default)]
struct Keeper {
    kept: Vec<Reply<u32>>,
    is_bitter: bool,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        assert!(!self.is_bitter, "the bitter one");
    }
}

#[actor]
impl Keeper {
    pub(crate) fn keep(&mut self, reply: Reply<u32>) {
        self.kept.push(reply);
    }

    /// Drops what it has kept, unanswered.
    pub(crate) fn let_go(&mut self) -> usize {
        self.kept.drain(..).count()
    }

    pub(crate) fn fail(&mut self) {
        panic!("the inner one");
    }

    pub(crate) fn become_bitter(&mut self) {
        self.is_bitter = true;
    }
}

/// What a [`Fragile`] does to its keeper in the drop of a local.
#[derive(Clone, Copy, Debug)]
enum Parting {
    LetGo,
    Fail,
    Kill,
}

/// Asks here and now; a task waits for the answer, so that the ask is not given up.
fn ask(mut ask: impl Future + Unpin + 'static) {
    if poll_once(&mut ask).is_pending() {
        spawn(async move { drop(ask.await) }).detach();
    }
}

struct Local {
    keeper: Addr<Keeper>,
    parting: Parting,
}

impl Drop for Local {
    fn drop(&mut self) {
        match self.parting {
            Parting::LetGo => ask(self.keeper.let_go().into_future()),
            Parting::Fail => ask(self.keeper.fail().into_future()),
            Parting::Kill => Addr::kill(self.keeper),
        }
    }
}

/// A panic's payload that asks the actor which panicked.
struct Payload {
    fragile: Addr<Fragile>,
    handled: Arc<AtomicBool>,
}

impl Drop for Payload {
    fn drop(&mut self) {
        let asked = poll_once(&mut self.fragile.note(self.handled.clone()).into_future());
        assert!(!matches!(asked, std::task::Poll::Ready(Ok(()))));
    }
}

/// A panic's payload that panics in its drop.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the payload's own");
    }
}

struct Fragile;

#[actor]
impl Fragile {
    pub(crate) fn ready(&self) {}

    pub(crate) fn note(&self, handled: Arc<AtomicBool>) {
        handled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn fail_with(&mut self, keeper: Addr<Keeper>, parting: Parting) {
        let _local = Local { keeper, parting };
        panic!("the outer one");
    }

    pub(crate) async fn wait_with(&mut self, keeper: Addr<Keeper>, parting: Parting) {
        let _local = Local { keeper, parting };
        std::future::pending::<()>().await;
    }

    pub(crate) fn fail_and_ask(&mut self, ctx: &mut Ctx<Self>, handled: Arc<AtomicBool>) {
        let fragile = ctx.addr();
        std::panic::panic_any(Payload { fragile, handled });
    }

    pub(crate) fn explode(&self) {
        std::panic::panic_any(Bomb);
    }

    pub(crate) async fn explode_later(&self) {
        yield_now().await;
        std::panic::panic_any(Bomb);
    }
}

/// Runs the body on shard 0 with two actors that have started and wait.
fn with_idle(body: impl AsyncFn(Addr<Fragile>, Addr<Keeper>) + Send + Sync + Clone + 'static) {
    on_shards(&[1], move |system| {
        let body = body.clone();
        system.run_on(0, move || async move {
            let fragile = greenroom::spawn(Fragile);
            let keeper = greenroom::spawn(Keeper::default());
            fragile.ready().await.unwrap();
            keeper.let_go().await.unwrap();
            body(fragile, keeper).await;
        });
    });
}

#[test]
fn a_reply_let_go_while_another_actor_panics_is_not_told_of_that_panic() {
    with_idle(async |fragile, keeper| {
        let mut kept = keeper.keep().into_future();
        assert!(poll_once(&mut kept).is_pending());
        // Waits until the keeper has it, and is idle again.
        yield_now().await;
        yield_now().await;
        fragile.fail_with(keeper, Parting::LetGo).await.unwrap_err();
        let error = kept.await.unwrap_err();
        assert!(matches!(error, CallError::NoReply(_)), "{error}");
    });
}

#[test]
fn a_reply_let_go_while_another_actor_is_killed_is_not_told_of_that_kill() {
    with_idle(async |fragile, keeper| {
        let mut waits = fragile.wait_with(keeper, Parting::LetGo).into_future();
        let mut kept = keeper.keep().into_future();
        assert!(poll_once(&mut waits).is_pending());
        assert!(poll_once(&mut kept).is_pending());
        yield_now().await;
        yield_now().await;
        Addr::kill(fragile);
        let error = kept.await.unwrap_err();
        assert!(matches!(error, CallError::NoReply(_)), "{error}");
        let error = waits.await.unwrap_err();
        assert!(matches!(error, CallError::Killed(_)), "{error}");
    });
}

#[test]
fn an_asker_hears_of_its_own_panic_and_not_of_one_in_the_unwinding() {
    for parting in [Parting::Fail, Parting::Kill] {
        with_idle(async move |fragile, keeper| {
            keeper.become_bitter().await.unwrap();
            let error = fragile.fail_with(keeper, parting).await.unwrap_err();
            assert!(error.to_string().contains("the outer one"), "{error}");
            Addr::stopped(keeper).await;
        });
    }
}

#[test]
fn an_actor_that_panicked_handles_nothing_its_payload_asks() {
    with_idle(async |fragile, _| {
        let handled = Arc::new(AtomicBool::new(false));
        let error = fragile.fail_and_ask(handled.clone()).await.unwrap_err();
        assert!(matches!(error, CallError::Panicked(..)), "{error}");
        Addr::stopped(fragile).await;
        assert!(!handled.load(Ordering::Relaxed));
    });
}

#[test]
fn a_payload_that_panics_in_its_drop_ends_the_actor_once() {
    on_shards(&[1], |system| {
        for waits in [false, true] {
            let before = counts(system).panics;
            let error = system.run_on(0, move || async move {
                let fragile = greenroom::spawn(Fragile);
                fragile.ready().await.unwrap();
                let error = if waits {
                    fragile.explode_later().await.unwrap_err()
                } else {
                    fragile.explode().await.unwrap_err()
                };
                Addr::stopped(fragile).await;
                error
            });
            assert!(matches!(error, CallError::Panicked(..)), "{error}");
            assert_eq!(counts(system).panics, before + 1);
        }
    });
}
