//! Nothing on a shard starves anything else on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use greenroom::prelude::*;
use greenroom::runtime::time::sleep;
use greenroom::runtime::yield_now;
use greenroom_tests::{Ledger, last_shard, ledger, on_shards};

/// Sends itself the next message from each one, in one of two ways.
struct Restless {
    enough: Arc<AtomicBool>,
}

#[actor]
impl Restless {
    pub(crate) fn go_on(&mut self, ctx: &mut Ctx<Self>) {
        if !self.enough.load(Ordering::Relaxed) {
            ctx.addr().go_on().try_tell().unwrap();
        }
    }

    /// Never waits, though it could.
    pub(crate) async fn go_on_async(&mut self, ctx: &mut Ctx<Self>) {
        if !self.enough.load(Ordering::Relaxed) {
            ctx.addr().go_on_async().try_tell().unwrap();
        }
    }
}

/// While something keeps shard 0 busy, a timer fires there, another actor there answers, and so it does to other shards.
fn check_others_go_on(system: &System, enough: &Arc<AtomicBool>) {
    let ledger: Addr<Ledger<4>> = ledger(system, 0);
    for shard in system.shards() {
        let answers = system.runtime().spawn_on(shard, move || async move {
            for number in 0..20 {
                ledger.note(0, number).await.unwrap();
            }
        });
        system.block_on(answers).unwrap();
    }
    system.run_on(0, || async { sleep(Duration::from_millis(3)).await });
    assert!(
        !enough.swap(true, Ordering::Relaxed),
        "it was busy all the time"
    );
}

#[test]
fn an_actor_that_tells_itself_for_ever_starves_nobody() {
    on_shards(&[1, 2], |system| {
        let enough = Arc::new(AtomicBool::new(false));
        let theirs = enough.clone();
        let restless = system
            .block_on(system.spawn_on(0, || Restless { enough: theirs }))
            .unwrap();
        system.block_on(restless.go_on().tell()).unwrap();
        check_others_go_on(system, &enough);
    });
}

#[test]
fn an_actor_that_tells_itself_from_handlers_that_are_async_but_never_wait_starves_nobody() {
    on_shards(&[1, 2], |system| {
        let enough = Arc::new(AtomicBool::new(false));
        let theirs = enough.clone();
        let restless = system
            .block_on(system.spawn_on(0, || Restless { enough: theirs }))
            .unwrap();
        system.block_on(restless.go_on_async().tell()).unwrap();
        check_others_go_on(system, &enough);
    });
}

#[test]
fn a_task_that_yields_for_ever_starves_nobody() {
    on_shards(&[1, 2], |system| {
        let enough = Arc::new(AtomicBool::new(false));
        let theirs = enough.clone();
        let busy = system.runtime().spawn_on(0, move || async move {
            while !theirs.load(Ordering::Relaxed) {
                yield_now().await;
            }
        });
        check_others_go_on(system, &enough);
        system.block_on(busy).unwrap();
    });
}

/// The other shard takes messages as fast as they come, so the link alone never makes the sender wait.
#[test]
fn a_sender_whose_messages_always_find_room_starves_nobody() {
    struct Sink;

    #[actor(mailbox = 1_000_000)]
    impl Sink {
        pub(crate) fn take(&mut self, number: u64) {
            let _ = number;
        }
    }

    on_shards(&[2, 4], |system| {
        let sink = system
            .block_on(system.spawn_on(last_shard(system), || Sink))
            .unwrap();
        let enough = Arc::new(AtomicBool::new(false));
        let theirs = enough.clone();
        let sender = system.runtime().spawn_on(0, move || async move {
            for number in 0..2_000_000 {
                sink.take(number).tell().await.unwrap();
                if theirs.load(Ordering::Relaxed) {
                    break;
                }
                // As slow as a sender that does something else too: the other shard keeps up.
                (0..200).for_each(|_| std::hint::spin_loop());
            }
        });
        check_others_go_on(system, &enough);
        system.block_on(sender).unwrap();
    });
}

/// Takes its time without waiting for anything.
struct Plodder {
    handled: Arc<AtomicUsize>,
}

#[actor]
impl Plodder {
    pub(crate) fn plod(&mut self) {
        self.take_time();
    }

    #[message(concurrent)]
    pub(crate) async fn plod_beside_others(&self) {
        self.take_time();
    }

    fn take_time(&self) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        self.handled.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_actor_whose_handlers_are_long_gives_way_after_each_of_them() {
    on_shards(&[1], |system| {
        for concurrent in [false, true] {
            let most = most_in_a_row(system, concurrent);
            assert!(most <= 2, "{most} messages were handled in a row");
        }
    });
}

/// How many long messages an actor handles before another task has its turn.
fn most_in_a_row(system: &System, concurrent: bool) -> usize {
    system.run_on(0, move || async move {
        let handled = Arc::new(AtomicUsize::new(0));
        let plodder = greenroom::spawn(Plodder {
            handled: handled.clone(),
        });
        for _ in 0..40 {
            let told = if concurrent {
                plodder.plod_beside_others().try_tell()
            } else {
                plodder.plod().try_tell()
            };
            told.unwrap();
        }
        let (mut most, mut last) = (0, 0);
        while last < 40 {
            yield_now().await;
            let now = handled.load(Ordering::Relaxed);
            most = most.max(now - last);
            last = now;
        }
        most
    })
}
