//! What a message allocates once everything has been used before: nothing.
//!
//! One test in a process of its own, as the allocator counts what every thread asks for.

#![expect(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::prelude::*;
use greenroom::{Recipient, tell_many};
use greenroom_tests::bounded;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: our caller's contract is the callee's.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
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
