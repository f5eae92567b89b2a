//! Messages from one sender to one actor are handled in the order sent.

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use greenroom::prelude::*;
use greenroom::runtime::yield_now;
use greenroom_tests::{Ledger, block_shard, last_shard, ledger, on_shards, poll_once, settle};

/// Messages a sender sends.
const MESSAGES: u64 = 300;

/// How a sender sends.
#[derive(Clone, Copy, Debug)]
enum Way {
    Tells,
    Asks,
    Mixed,
    Joined,
}

async fn send<const N: usize>(to: Addr<Ledger<N>>, way: Way, sender: u32) {
    match way {
        Way::Joined => send_joined(to, sender).await,
        Way::Tells | Way::Asks | Way::Mixed => {
            for number in 0..MESSAGES {
                let kind = match way {
                    Way::Tells => 0,
                    Way::Asks => 1,
                    Way::Mixed | Way::Joined => (number * 7 + number / 5) % 4,
                };
                send_one(to, kind, sender, number).await;
            }
        }
    }
    // What was told before has been handled when this is answered.
    to.seen().await.unwrap();
}

async fn send_one<const N: usize>(to: Addr<Ledger<N>>, kind: u64, sender: u32, number: u64) {
    match kind {
        0 => to.note(sender, number).tell().await.unwrap(),
        1 => assert_eq!(to.note(sender, number).await.unwrap(), number),
        2 => assert_eq!(to.note_slowly(sender, number).await.unwrap(), number),
        _ => {
            while let Err(error) = to.note(sender, number).try_tell() {
                assert!(error.is_full(), "{error}");
                assert_eq!(error.into_args(), Some((sender, number)));
                yield_now().await;
            }
        }
    }
}

/// Sixteen sends in flight at a time.
async fn send_joined<const N: usize>(to: Addr<Ledger<N>>, sender: u32) {
    for first in (0..MESSAGES).step_by(16) {
        let sends =
            (first..MESSAGES.min(first + 16)).map(|number| -> LocalBoxFuture<'static, ()> {
                match number % 3 {
                    0 => to
                        .note(sender, number)
                        .tell()
                        .map(|sent| sent.unwrap())
                        .boxed_local(),
                    1 => to
                        .note(sender, number)
                        .into_future()
                        .map(|answer| assert!(answer.is_ok()))
                        .boxed_local(),
                    _ => to
                        .note_slowly(sender, number)
                        .tell()
                        .map(|sent| sent.unwrap())
                        .boxed_local(),
                }
            });
        join_all(sends).await;
    }
}

/// One sender on every shard and two outside, all at once.
fn check<const N: usize>(system: &System, way: Way) {
    let ledger: Addr<Ledger<N>> = ledger(system, last_shard(system));
    let inside: Vec<_> = (0_u32..)
        .zip(system.shards())
        .map(|(sender, shard)| {
            system
                .runtime()
                .spawn_on(shard, move || send(ledger, way, sender))
        })
        .collect();
    std::thread::scope(|scope| {
        for outsider in [100, 101] {
            scope.spawn(move || system.block_on(send(ledger, way, outsider)));
        }
    });
    for sender in inside {
        system.block_on(sender).unwrap();
    }
    let seen = system.block_on(ledger.seen().into_future()).unwrap();
    let senders = (0_u32..).take(system.shard_count()).chain([100, 101]);
    for sender in senders {
        let numbers: Vec<u64> = seen
            .iter()
            .filter(|entry| entry.0 == sender)
            .map(|entry| entry.1)
            .collect();
        assert_eq!(
            numbers,
            (0..MESSAGES).collect::<Vec<_>>(),
            "sender {sender}, {way:?}, mailbox of {N}"
        );
    }
}

fn check_all_ways<const N: usize>(system: &System) {
    for way in [Way::Tells, Way::Asks, Way::Mixed, Way::Joined] {
        check::<N>(system, way);
    }
}

#[test]
fn a_mailbox_of_one_place_keeps_every_senders_order() {
    on_shards(&[1, 2, 4], check_all_ways::<1>);
}

#[test]
fn a_mailbox_of_two_places_keeps_every_senders_order() {
    on_shards(&[1, 2, 4], check_all_ways::<2>);
}

#[test]
fn a_roomy_mailbox_keeps_every_senders_order() {
    on_shards(&[1, 2, 4], check_all_ways::<256>);
}

/// The first send waits for the link, the second one for the actor, which has asked for a pause in between.
#[test]
fn a_send_that_waits_for_the_link_is_not_overtaken_by_one_that_waits_for_the_actor() {
    on_shards(&[2], |system| {
        let ledger: Addr<Ledger<1>> = ledger(system, 1);
        let (open, gate) = oneshot::channel();
        let handle = system.handle().clone();
        let sent = system.run_on(0, move || async move {
            ledger.wait(gate).tell().await.unwrap();
            settle(&handle, 1).await;
            let mut number = 0;
            while ledger.note(0, number).try_tell().is_ok() {
                number += 1;
            }
            let mut first = ledger.note(0, number).tell();
            assert!(poll_once(&mut first).is_pending(), "the link is full");
            settle(&handle, 1).await;
            let mut second = ledger.note(0, number + 1).tell();
            assert!(
                poll_once(&mut second).is_pending(),
                "the actor wants a pause"
            );
            assert!(
                poll_once(&mut first).is_pending(),
                "the actor wants a pause"
            );
            open.send(()).unwrap();
            let (second, first) = futures_util::join!(second, first);
            first.unwrap();
            second.unwrap();
            number + 2
        });
        let seen = system.run_on(0, move || async move { ledger.seen().await.unwrap() });
        assert_eq!(
            seen,
            (0..sent).map(|number| (0, number)).collect::<Vec<_>>()
        );
    });
}

#[test]
fn sends_from_outside_that_arrive_together_keep_their_order() {
    on_shards(&[1, 2], |system| {
        let shard = last_shard(system);
        let ledger: Addr<Ledger<2>> = ledger(system, shard);
        let release = block_shard(system, shard);
        for number in 0..50 {
            ledger.note(0, number).try_tell().unwrap();
        }
        let mut ask = ledger.note(0, 50).into_future();
        assert!(poll_once(&mut ask).is_pending());
        let mut tell = ledger.note(0, 51).tell();
        assert!(poll_once(&mut tell).is_pending());
        drop(release);
        assert_eq!(system.block_on(ask).unwrap(), 50);
        system.block_on(tell).unwrap();
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen, (0..52).map(|number| (0, number)).collect::<Vec<_>>());
    });
}

/// A task that ended while it stood in the run queue leaves its place to nobody.
#[test]
fn sends_from_outside_keep_their_order_when_actors_are_killed_in_the_same_turn() {
    struct Restless;

    #[actor]
    impl Restless {
        pub(crate) fn go_on(&mut self, ctx: &mut Ctx<Self>) {
            ctx.addr().go_on().try_tell().unwrap();
        }
    }

    on_shards(&[1, 2], |system| {
        let shard = last_shard(system);
        let ledger: Addr<Ledger<1>> = ledger(system, shard);
        let (queued, idle) = (
            system.spawn_on(shard, || Restless),
            system.spawn_on(shard, || Restless),
        );
        let (queued, idle) = (
            system.block_on(queued).unwrap(),
            system.block_on(idle).unwrap(),
        );
        system.block_on(queued.go_on().tell()).unwrap();
        let release = block_shard(system, shard);
        Addr::kill(queued);
        Addr::kill(idle);
        for number in 0..10 {
            ledger.note(0, number).try_tell().unwrap();
        }
        drop(release);
        assert_eq!(
            system.block_on(ledger.note(0, 10).into_future()).unwrap(),
            10
        );
        let seen = system.block_on(ledger.seen().into_future()).unwrap();
        assert_eq!(seen, (0..11).map(|number| (0, number)).collect::<Vec<_>>());
    });
}
