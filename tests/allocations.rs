//! What a message allocates once everything has been used before: nothing. And what an idle actor keeps.
//!
//! In a process of its own, as the allocator counts what every thread asks for; so the tests take turns.

#![expect(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use greenroom::prelude::*;
use greenroom::{Recipient, tell_many};
use greenroom_tests::bounded;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Bytes that were asked for and not given back.
static LIVE: AtomicI64 = AtomicI64::new(0);
static TURNS: Mutex<()> = Mutex::new(());

fn size(layout: Layout) -> i64 {
    i64::try_from(layout.size()).expect("less than 2^63")
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        LIVE.fetch_add(size(layout), Ordering::Relaxed);
        // SAFETY: our caller's contract is the callee's.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(size(layout), Ordering::Relaxed);
        // SAFETY: our caller's contract is the callee's.
        unsafe { Heap.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

/// Large enough to lie in a block beside the ring.
type Page = [u64; 128];

#[derive(Default)]
struct Sum {
    of: u64,
}

#[actor(mailbox = 64)]
impl Sum {
    pub(crate) fn add(&mut self, number: u64) {
        self.of += number;
    }

    #[expect(
        clippy::large_types_passed_by_value,
        reason = "a large message is what this is about"
    )]
    pub(crate) fn add_page(&mut self, page: Page) {
        self.of += page.iter().sum::<u64>();
    }

    pub(crate) fn of(&self) -> u64 {
        self.of
    }
}

/// How a message is sent.
#[derive(Clone, Copy, Debug)]
enum Way {
    Tell,
    Ask,
    Bulk,
    Recipient,
    LargeTell,
    LargeAsk,
}

const WAYS: [Way; 6] = [
    Way::Tell,
    Way::Ask,
    Way::Bulk,
    Way::Recipient,
    Way::LargeTell,
    Way::LargeAsk,
];

/// Sends 32 messages, which neither the mailbox nor the blocks of a link make wait, and waits until they were handled.
async fn send(way: Way, sum: Addr<Sum>, recipient: &Recipient<u64>) {
    const COUNT: u64 = 32;
    match way {
        Way::Bulk => {
            let calls = (0..COUNT).map(|number| sum.add(number));
            assert_eq!(tell_many(calls).await.unwrap() as u64, COUNT);
        }
        _ => {
            for number in 0..COUNT {
                match way {
                    Way::Tell | Way::Bulk => sum.add(number).tell().await.unwrap(),
                    Way::Ask => sum.add(number).await.unwrap(),
                    Way::Recipient => recipient.tell(number).await.unwrap(),
                    Way::LargeTell => sum.add_page([number; 128]).tell().await.unwrap(),
                    Way::LargeAsk => sum.add_page([number; 128]).await.unwrap(),
                }
            }
        }
    }
    sum.of().await.unwrap();
}

/// The fewest allocations of a round of 3200 messages. Not of the first: queues grow when they are used more than before,
/// which may be late.
async fn allocations(way: Way, sum: Addr<Sum>) -> u64 {
    let recipient = Recipient::new(sum, |sum, number| sum.add(number));
    let mut fewest = u64::MAX;
    for _ in 0..10 {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..100 {
            send(way, sum, &recipient).await;
        }
        fewest = fewest.min(ALLOCATIONS.load(Ordering::Relaxed) - before);
        if fewest == 0 {
            break;
        }
    }
    fewest
}

#[test]
fn messages_allocate_nothing() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    bounded("some thousand messages in every way", || {
        let system = System::start(2).unwrap();
        for shard in [0, 1] {
            let sum = system
                .block_on(system.spawn_on(shard, Sum::default))
                .unwrap();
            for way in WAYS {
                let count = system.run_on(0, move || allocations(way, sum));
                assert_eq!(count, 0, "{way:?} to shard {shard}");
            }
        }
    });
}

/// Has no state and no start hook.
struct Idle;

#[actor]
impl Idle {
    pub(crate) fn nothing(&self) {}
}

/// Actors that are measured at once.
const CROWD: i64 = 1000;

/// Spawns actors on the calling shard, and waits until each has handled a message and is idle.
async fn crowd() -> Vec<Addr<Idle>> {
    let crowd: Vec<Addr<Idle>> = (0..CROWD).map(|_| greenroom::spawn(Idle)).collect();
    for idle in &crowd {
        idle.nothing().await.unwrap();
    }
    crowd
}

async fn dismiss(crowd: Vec<Addr<Idle>>) {
    for idle in crowd {
        Addr::kill(idle);
        Addr::stopped(idle).await;
    }
}

/// The bytes that each actor keeps when it is idle: its mailbox and its task. The tables of the shard are there already, as
/// there have been as many actors before.
async fn bytes_of_an_idle_actor() -> i64 {
    dismiss(crowd().await).await;
    let before = LIVE.load(Ordering::Relaxed);
    let crowd = crowd().await;
    let addresses = i64::try_from(size_of_val(&*crowd)).expect("a thousand addresses");
    let kept = LIVE.load(Ordering::Relaxed) - before - addresses;
    dismiss(crowd).await;
    let after = LIVE.load(Ordering::Relaxed);
    assert!(
        (after - before).abs() < CROWD,
        "{after} after {before}: something is left"
    );
    kept / CROWD
}

#[test]
fn an_idle_actor_keeps_half_a_kilobyte_at_most() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    bounded("some thousand actors", || {
        for shards in [1, 2] {
            let system = System::start(shards).unwrap();
            let bytes = system.run_on(0, bytes_of_an_idle_actor);
            // Less than this is no actor: then nothing was measured.
            assert!(
                (100..=512).contains(&bytes),
                "an idle actor keeps {bytes} bytes"
            );
        }
    });
}
