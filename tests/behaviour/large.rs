//! Messages larger than a record in a link: the same order, accounting and home as small ones.

use std::sync::mpsc;

use futures_channel::oneshot;
use greenroom::prelude::*;
use greenroom_tests::{block_shard, bounded, counts, hear, on_shards, poll_once, settle, start};

/// Takes messages of `N` bytes and more.
#[derive(Default)]
struct Pages<const N: usize> {
    seen: Vec<u32>,
}

#[actor(mailbox = 8)]
impl<const N: usize> Pages<N> {
    pub(crate) fn page(&mut self, number: u32, bytes: [u8; N]) -> u32 {
        assert_eq!(bytes, page(number));
        self.seen.push(number);
        number
    }

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }

    pub(crate) fn seen(&self) -> Vec<u32> {
        self.seen.clone()
    }
}

fn page<const N: usize>(number: u32) -> [u8; N] {
    [number.to_le_bytes()[0]; N]
}

/// The links of these tests have 4 KiB: blocks of at most 16 KiB, or one that is larger.
fn arrive_in_order<const N: usize>(system: &System) {
    let pages = system
        .block_on(system.spawn_on(1, Pages::<N>::default))
        .unwrap();
    let seen = system.run_on(0, move || async move {
        for number in 0..400 {
            match number % 7 {
                0 => assert_eq!(pages.page(number, page(number)).await.unwrap(), number),
                _ => pages.page(number, page(number)).tell().await.unwrap(),
            }
        }
        pages.seen().await.unwrap()
    });
    assert_eq!(seen, (0..400).collect::<Vec<_>>());
}

#[test]
fn messages_of_every_size_arrive_in_order() {
    on_shards(&[2], |system| {
        arrive_in_order::<200>(system);
        arrive_in_order::<300>(system);
        arrive_in_order::<4000>(system);
        arrive_in_order::<17_000>(system);
    });
}

/// Stricter than any block.
#[derive(Debug, PartialEq)]
#[repr(align(128))]
struct Aligned(u32);

#[derive(Default)]
struct Strict {
    seen: Vec<u32>,
}

#[actor]
impl Strict {
    pub(crate) fn take(&mut self, value: Aligned) {
        assert!(std::ptr::from_ref(&value).addr().is_multiple_of(128));
        self.seen.push(value.0);
    }

    pub(crate) fn seen(&self) -> Vec<u32> {
        self.seen.clone()
    }
}

#[test]
fn messages_keep_an_alignment_that_no_block_has() {
    on_shards(&[2], |system| {
        let strict = system
            .block_on(system.spawn_on(1, Strict::default))
            .unwrap();
        let seen = system.run_on(0, move || async move {
            for number in 0..300 {
                strict.take(Aligned(number)).tell().await.unwrap();
            }
            strict.seen().await.unwrap()
        });
        assert_eq!(seen, (0..300).collect::<Vec<_>>());
    });
}

#[test]
fn large_messages_in_flight_are_bounded_and_all_arrive() {
    on_shards(&[2], |system| {
        let pages = system
            .block_on(system.spawn_on(1, Pages::<4000>::default))
            .unwrap();
        let (open, gate) = oneshot::channel();
        let handle = system.handle().clone();
        let (sent, seen) = system.run_on(0, move || async move {
            pages.wait(gate).tell().await.unwrap();
            settle(&handle, 1).await;
            let mut sent = 0;
            while pages.page(sent, page(sent)).try_tell().is_ok() {
                sent += 1;
            }
            assert!((3..=4).contains(&sent), "{sent} pages in blocks of 16 KiB");
            for _ in 0..20 {
                settle(&handle, 1).await;
                while pages.page(sent, page(sent)).try_tell().is_ok() {
                    sent += 1;
                }
            }
            assert!(
                sent <= 8 + 4 + 4,
                "{sent} pages before a full mailbox asked for a pause"
            );
            let mut waiting = pages.page(sent, page(sent)).tell();
            assert!(poll_once(&mut waiting).is_pending());
            open.send(()).unwrap();
            waiting.await.unwrap();
            (sent, pages.seen().await.unwrap())
        });
        assert_eq!(seen, (0..=sent).collect::<Vec<_>>());
    });
}

struct Keeper;

#[actor(mailbox = 2)]
impl Keeper {
    #[expect(
        clippy::large_types_passed_by_value,
        reason = "large messages are what this is about"
    )]
    pub(crate) fn take(&mut self, _value: Arriving, _padding: [u64; 99]) {}

    pub(crate) async fn wait(&mut self, gate: oneshot::Receiver<()>) {
        gate.await.ok();
    }
}

/// Says when it is dropped, and on which shard.
struct Arriving(mpsc::Sender<Option<usize>>);

impl Drop for Arriving {
    fn drop(&mut self) {
        let shard = greenroom::runtime::current_shard();
        self.0.send(shard.map(greenroom::ShardId::index)).ok();
    }
}

#[test]
fn large_messages_that_find_nobody_are_dropped_at_their_shard_and_counted() {
    on_shards(&[2], |system| {
        let keeper = system.block_on(system.spawn_on(1, || Keeper)).unwrap();
        let (open, gate) = oneshot::channel();
        system.block_on(keeper.wait(gate).tell()).unwrap();
        let (dropped, drops) = mpsc::channel();
        let handle = system.handle().clone();
        let (sent, refused) = system.run_on(0, move || async move {
            let mut sent = 0;
            let mut refused = Vec::new();
            for _ in 0..10 {
                let value = Arriving(dropped.clone());
                match keeper.take(value, [0; 99]).try_tell() {
                    Ok(()) => sent += 1,
                    Err(error) => refused.push(error),
                }
                settle(&handle, 1).await;
            }
            Addr::kill(keeper);
            (sent, refused)
        });
        assert!(sent >= 2);
        for _ in 0..sent {
            assert_eq!(hear(&drops), Some(1));
        }
        system.block_on(Addr::stopped(keeper));
        assert_eq!(counts(system).dead_letters, sent);
        drop((open, refused));
    });
}

#[test]
fn large_messages_that_are_in_a_link_when_the_system_ends_are_dropped() {
    bounded("a system that ends with full links", || {
        let (dropped, drops) = mpsc::channel();
        let system = start(2);
        let keeper = system.block_on(system.spawn_on(1, || Keeper)).unwrap();
        let release = block_shard(&system, 1);
        let sent = system.run_on(0, move || async move {
            let mut sent = 0;
            for _ in 0..99 {
                let told = keeper.take(Arriving(dropped.clone()), [0; 99]).try_tell();
                sent += usize::from(told.is_ok());
            }
            sent
        });
        assert!((2..99).contains(&sent), "{sent} were accepted");
        let ending = std::thread::spawn(move || drop(system));
        drop(release);
        ending.join().unwrap();
        assert_eq!(
            drops.try_iter().count(),
            99,
            "those that were refused included"
        );
    });
}
