//! Memory under overload is bounded by the mailbox and the links.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom::runtime::{spawn, yield_now};
use greenroom_tests::{Ledger, bounded, ledger, on_shards, poll_once, settle};

#[test]
fn a_mailbox_takes_as_many_messages_as_it_has_places_from_its_own_shard() {
    fn check<const N: usize>() {
        on_shards(&[1, 2], |system| {
            let ledger: Addr<Ledger<N>> = ledger(system, 0);
            let (open, gate) = oneshot::channel();
            let taken = system.run_on(0, move || async move {
                ledger.wait(gate).tell().await.unwrap();
                yield_now().await;
                let taken = (0..)
                    .take_while(|number| ledger.note(0, *number).try_tell().is_ok())
                    .count();
                let mut more = ledger.note(0, 0).tell();
                assert!(poll_once(&mut more).is_pending());
                taken
            });
            assert_eq!(taken, N);
            open.send(()).unwrap();
        });
    }
    check::<1>();
    check::<2>();
    check::<256>();
}

#[test]
fn a_busy_actor_on_another_shard_takes_what_the_link_holds_and_then_its_senders_wait() {
    on_shards(&[2], |system| {
        let ledger: Addr<Ledger<4>> = ledger(system, 1);
        let (open, gate) = oneshot::channel();
        let handle = system.handle().clone();
        let taken = system.run_on(0, move || async move {
            ledger.wait(gate).tell().await.unwrap();
            settle(&handle, 1).await;
            let mut taken = 0_u64;
            for _ in 0..20 {
                while ledger.note(0, taken).try_tell().is_ok() {
                    taken += 1;
                }
                settle(&handle, 1).await;
            }
            taken
        });
        // A record takes at least 16 bytes of the ring, and one ring may be on its way when the pause is asked for.
        assert!(taken <= 4 + 2 * 4096 / 16, "{taken} messages were accepted");
        open.send(()).unwrap();
        let seen = system.run_on(0, move || async move { ledger.seen().await.unwrap() });
        assert_eq!(seen.len() as u64, taken);
    });
}

#[test]
fn a_choked_actor_does_not_stop_sends_to_others_of_its_shard() {
    on_shards(&[2], |system| {
        let (busy, free): (Addr<Ledger<1>>, Addr<Ledger<1>>) =
            (ledger(system, 1), ledger(system, 1));
        let (open, gate) = oneshot::channel();
        let handle = system.handle().clone();
        system.run_on(0, move || async move {
            busy.wait(gate).tell().await.unwrap();
            // The wish for a pause may take a few turns of a busy machine to come.
            for number in 0..100 {
                busy.note(0, number).tell().await.unwrap();
                settle(&handle, 1).await;
                if busy.note(0, number).try_tell().is_err() {
                    break;
                }
            }
            assert!(
                busy.note(0, 9).try_tell().unwrap_err().is_full(),
                "it wants a pause"
            );
            for number in 0..500 {
                assert_eq!(free.note(0, number).await.unwrap(), number);
            }
        });
        open.send(()).unwrap();
    });
}

/// Handles one message a turn, so that it is always behind.
struct Slow {
    handled: Arc<AtomicU64>,
}

#[actor(mailbox = 16)]
impl Slow {
    pub(crate) async fn take(&mut self, number: u64) {
        let _ = number;
        self.handled.fetch_add(1, Ordering::Relaxed);
        yield_now().await;
    }
}

#[test]
fn a_sender_that_never_pauses_cannot_run_ahead_of_a_slow_actor_by_more_than_the_bound() {
    on_shards(&[2, 4], |system| {
        let handled = Arc::new(AtomicU64::new(0));
        let theirs = handled.clone();
        let slow = system
            .block_on(system.spawn_on(1, move || Slow { handled: theirs }))
            .unwrap();
        let ahead = Arc::new(AtomicI64::new(0));
        let most = ahead.clone();
        let sender = system.runtime().spawn_on(0, move || async move {
            for number in 0..20_000_u64 {
                slow.take(number).tell().await.unwrap();
                let handled = handled.load(Ordering::Relaxed);
                most.fetch_max(
                    number.cast_signed() - handled.cast_signed(),
                    Ordering::Relaxed,
                );
                // A sender with something else to do gives the other shard the time to empty the link.
                (0..100).for_each(|_| std::hint::spin_loop());
            }
        });
        system.block_on(sender).unwrap();
        let ahead = ahead.load(Ordering::Relaxed);
        assert!(ahead <= 16 + 3 * 4096 / 16, "it ran {ahead} messages ahead");
    });
}

#[test]
fn at_most_4096_messages_nobody_waits_for_are_on_their_way_from_outside() {
    on_shards(&[1, 2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 0);
        let (open, gate) = oneshot::channel();
        system.block_on(ledger.wait(gate).tell()).unwrap();
        let taken = (0..10_000)
            .take_while(|number| ledger.note(0, *number).try_tell().is_ok())
            .count();
        // One of them may stand in the mailbox already.
        assert!((4096..=4097).contains(&taken), "{taken} were accepted");
        open.send(()).unwrap();
        // An ask comes after all of them.
        system.block_on(ledger.note(0, 0).into_future()).unwrap();
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen.len(), taken + 1);
        ledger.note(0, 0).try_tell().unwrap();
    });
}

/// The link has room for all messages, so it never makes the sender wait.
#[test]
fn a_sender_that_always_finds_room_lets_its_shard_take_turns() {
    bounded("the sender", || {
        let builder = System::builder().shards(2).pin(false);
        let system = builder
            .runtime(|runtime| runtime.link_bytes(1 << 22))
            .start()
            .unwrap();
        let handled = Arc::new(AtomicU64::new(0));
        let slow = system
            .block_on(system.spawn_on(1, move || Slow { handled }))
            .unwrap();
        let turns = Arc::new(AtomicU64::new(0));
        let theirs = turns.clone();
        let most = system.run_on(0, move || async move {
            spawn(async move {
                loop {
                    theirs.fetch_add(1, Ordering::Relaxed);
                    yield_now().await;
                }
            })
            .detach();
            let (mut most, mut in_turn, mut turn) = (0, 0, 0);
            for number in 0..20_000_u64 {
                slow.take(number).tell().await.unwrap();
                let now = turns.load(Ordering::Relaxed);
                in_turn = if now == turn { in_turn + 1 } else { 1 };
                turn = now;
                most = most.max(in_turn);
            }
            most
        });
        assert!(most <= 2 * 1024, "{most} messages were sent in one turn");
    });
}

/// Tells itself things.
#[derive(Default)]
struct Soliloquist {
    heard: usize,
}

#[actor(mailbox = 8)]
impl Soliloquist {
    pub(crate) fn hear(&mut self) {
        self.heard += 1;
    }

    /// Tells itself something again and again, and returns how often it was accepted.
    pub(crate) async fn speak(&mut self, times: usize, ctx: &mut Ctx<Self>) -> usize {
        let mut accepted = 0;
        for _ in 0..times {
            match ctx.addr().hear().tell().await {
                Ok(()) => accepted += 1,
                Err(error) => assert!(error.is_full() && error.into_args().is_some()),
            }
        }
        accepted
    }

    pub(crate) fn heard(&self) -> usize {
        self.heard
    }
}

#[test]
fn an_actor_that_fills_its_own_mailbox_is_told_so_and_does_not_wait_for_itself() {
    on_shards(&[1, 2], |system| {
        let actor = system
            .block_on(system.spawn_on(0, Soliloquist::default))
            .unwrap();
        let accepted = system.block_on(actor.speak(100).into_future()).unwrap();
        assert_eq!(accepted, 8, "as many as the mailbox holds");
        assert_eq!(system.block_on(actor.heard().into_future()).unwrap(), 8);
    });
}
