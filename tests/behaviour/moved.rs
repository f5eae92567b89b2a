//! The futures of calls may be polled on any thread, and dropped on any.

use std::sync::mpsc;

use std::task::Poll;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom_tests::{Ledger, hear, ledger, on_shards, poll_once, settle};

/// Holds every reply until it is told to answer, or to say which are wanted.
#[derive(Default)]
struct Desk {
    waiting: Vec<Reply<u64>>,
}

#[actor]
impl Desk {
    pub(crate) fn ask(&mut self, reply: Reply<u64>) {
        self.waiting.push(reply);
    }

    pub(crate) fn answer(&mut self) {
        for (number, reply) in (0..).zip(self.waiting.drain(..)) {
            reply.send(number);
        }
    }

    pub(crate) fn wanted(&self) -> usize {
        self.waiting
            .iter()
            .filter(|reply| reply.is_wanted())
            .count()
    }
}

#[test]
#[expect(
    clippy::async_yields_async,
    reason = "the future is begun here and goes on elsewhere"
)]
fn an_ask_that_waits_for_its_answer_on_a_shard_gets_it_outside() {
    on_shards(&[1, 2, 4], |system| {
        for shard in system.shards() {
            let desk = system
                .block_on(system.spawn_on(shard, Desk::default))
                .unwrap();
            let ask = system.run_on(0, move || async move {
                let mut ask = desk.ask().into_future();
                assert!(poll_once(&mut ask).is_pending());
                desk.wanted().await.unwrap();
                ask
            });
            let mut ask = ask;
            assert!(poll_once(&mut ask).is_pending());
            system.block_on(desk.answer().into_future()).unwrap();
            assert_eq!(system.block_on(ask).unwrap(), 0);
        }
    });
}

#[test]
fn an_ask_that_was_begun_outside_gets_its_answer_on_a_shard() {
    on_shards(&[1, 2], |system| {
        let desk = system.block_on(system.spawn_on(0, Desk::default)).unwrap();
        for shard in system.shards() {
            let mut ask = desk.ask().into_future();
            assert!(poll_once(&mut ask).is_pending());
            system.block_on(desk.wanted().into_future()).unwrap();
            let answer = system.runtime().spawn_on(shard, move || ask);
            system.block_on(desk.answer().into_future()).unwrap();
            assert_eq!(system.block_on(answer).unwrap().unwrap(), 0);
        }
    });
}

#[test]
#[expect(
    clippy::async_yields_async,
    reason = "the future is begun here and goes on elsewhere"
)]
fn an_ask_that_moved_outside_and_was_dropped_is_not_wanted_any_more() {
    on_shards(&[1, 2], |system| {
        let desk = system.block_on(system.spawn_on(0, Desk::default)).unwrap();
        let mut ask = system.run_on(0, move || async move {
            let mut ask = desk.ask().into_future();
            assert!(poll_once(&mut ask).is_pending());
            yield_now().await;
            ask
        });
        assert!(poll_once(&mut ask).is_pending());
        assert_eq!(system.block_on(desk.wanted().into_future()).unwrap(), 1);
        drop(ask);
        // The courier that waits in the ask's place hears of it on its shard.
        for _ in 0..10_000 {
            if system.block_on(desk.wanted().into_future()).unwrap() == 0 {
                return;
            }
        }
        panic!("the reply of a dropped ask is still wanted");
    });
}

/// A sender that waits in the line of a full mailbox goes on from another thread: its old place must not be left behind.
#[test]
fn a_send_that_waits_for_the_mailbox_and_moves_outside_blocks_nobody() {
    on_shards(&[1, 2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 0);
        let (open, gate) = oneshot::channel();
        let (ask, tell) = system.run_on(0, move || async move {
            ledger.wait(gate).tell().await.unwrap();
            yield_now().await;
            ledger.note(0, 0).tell().await.unwrap();
            let mut ask = ledger.note(0, 1).into_future();
            assert!(poll_once(&mut ask).is_pending());
            let mut tell = ledger.note(0, 2).tell();
            assert!(poll_once(&mut tell).is_pending());
            (ask, tell)
        });
        let (mut ask, mut tell) = (ask, tell);
        assert!(poll_once(&mut ask).is_pending());
        assert!(poll_once(&mut tell).is_pending());
        open.send(()).unwrap();
        assert_eq!(system.block_on(ask).unwrap(), 1);
        system.block_on(tell).unwrap();
        let seen = system.run_on(0, move || async move { ledger.seen().await.unwrap() });
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2)]);
    });
}

#[test]
fn a_send_that_waits_for_the_link_and_moves_outside_blocks_nobody() {
    on_shards(&[2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 1);
        let (open, gate) = oneshot::channel();
        let (sent, mut moved) = system.run_on(0, move || async move {
            ledger.wait(gate).tell().await.unwrap();
            let mut number = 0;
            while ledger.note(0, number).try_tell().is_ok() {
                number += 1;
            }
            let mut moved = ledger.note(1, 0).tell();
            assert!(poll_once(&mut moved).is_pending());
            (number, moved)
        });
        // What it stood behind on the link may not have left yet: then the mailbox has room for it at once.
        let polled = poll_once(&mut moved);
        open.send(()).unwrap();
        match polled {
            Poll::Ready(sent) => sent.unwrap(),
            Poll::Pending => system.block_on(moved).unwrap(),
        }
        let seen = system.run_on(0, move || async move { ledger.seen().await.unwrap() });
        assert_eq!(u64::try_from(seen.len()).unwrap(), sent + 1);
    });
}

#[test]
fn a_send_that_waits_for_the_link_and_moves_to_the_actors_shard_blocks_nobody() {
    on_shards(&[2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 1);
        let (open, gate) = oneshot::channel();
        let (sent, moved) = system.run_on(0, move || async move {
            ledger.wait(gate).tell().await.unwrap();
            let mut number = 0;
            while ledger.note(0, number).try_tell().is_ok() {
                number += 1;
            }
            let mut moved = ledger.note(1, 0).tell();
            assert!(poll_once(&mut moved).is_pending());
            (number, moved)
        });
        let there = system.runtime().spawn_on(1, move || moved);
        open.send(()).unwrap();
        system.block_on(there).unwrap().unwrap();
        let seen = system.run_on(0, move || async move { ledger.seen().await.unwrap() });
        assert_eq!(u64::try_from(seen.len()).unwrap(), sent + 1);
    });
}

#[test]
#[expect(
    clippy::async_yields_async,
    reason = "the future is begun here and goes on elsewhere"
)]
fn a_send_that_waits_for_the_mailbox_and_moves_to_another_shard_blocks_nobody() {
    on_shards(&[2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 0);
        let (open, gate) = oneshot::channel();
        let moved = system.run_on(0, move || async move {
            ledger.wait(gate).tell().await.unwrap();
            yield_now().await;
            ledger.note(0, 0).tell().await.unwrap();
            let mut moved = ledger.note(0, 1).tell();
            assert!(poll_once(&mut moved).is_pending());
            moved
        });
        let there = system.runtime().spawn_on(1, move || moved);
        open.send(()).unwrap();
        system.block_on(there).unwrap().unwrap();
        let seen = system.run_on(1, move || async move { ledger.seen().await.unwrap() });
        assert_eq!(seen, [(0, 0), (0, 1)]);
    });
}

#[test]
#[expect(
    clippy::async_yields_async,
    reason = "the future is begun here and goes on elsewhere"
)]
fn a_waiting_send_that_is_dropped_outside_blocks_nobody() {
    on_shards(&[2], |system| {
        for shard in [0, 1] {
            let ledger: Addr<Ledger<1>> = ledger(system, shard);
            let (open, gate) = oneshot::channel();
            let handle = system.handle().clone();
            let dropped = system.run_on(0, move || async move {
                ledger.wait(gate).tell().await.unwrap();
                settle(&handle, 1).await;
                while ledger.note(0, 0).try_tell().is_ok() {}
                let mut moved = ledger.note(1, 0).tell();
                assert!(poll_once(&mut moved).is_pending());
                moved
            });
            drop(dropped);
            open.send(()).unwrap();
            let seen = system.run_on(0, move || async move { ledger.seen().await.unwrap() });
            assert!(
                seen.iter().all(|entry| *entry == (0, 0)),
                "a dropped send sends nothing"
            );
        }
    });
}

#[test]
fn a_tell_from_outside_that_is_dropped_while_it_waits_sends_nothing() {
    on_shards(&[1, 2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 0);
        let (open, gate) = oneshot::channel();
        system.block_on(ledger.wait(gate).tell()).unwrap();
        system.block_on(ledger.note(0, 0).tell()).unwrap();
        let mut tell = ledger.note(0, 1).tell();
        assert!(poll_once(&mut tell).is_pending());
        drop(tell);
        let mut ask = ledger.note(0, 2).into_future();
        assert!(poll_once(&mut ask).is_pending());
        open.send(()).unwrap();
        assert_eq!(system.block_on(ask).unwrap(), 2);
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen, [(0, 0), (0, 2)]);
    });
}

#[test]
fn an_answer_may_be_given_on_any_thread() {
    #[derive(Default)]
    struct Delegate;

    #[actor]
    impl Delegate {
        pub(crate) fn work(&mut self, to: mpsc::Sender<Reply<u64>>, reply: Reply<u64>) {
            to.send(reply).unwrap();
        }
    }

    on_shards(&[1, 2], |system| {
        let delegate = system
            .block_on(system.spawn_on(0, Delegate::default))
            .unwrap();
        for shard in system.shards() {
            let (give, take) = mpsc::channel();
            let answer = system
                .runtime()
                .spawn_on(shard, move || delegate.work(give).into_future());
            hear(&take).send(7);
            assert_eq!(system.block_on(answer).unwrap().unwrap(), 7);
        }
    });
}
