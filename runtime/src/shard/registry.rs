//! The process-wide table of shards: all that a thread may touch of a shard that is not its own.
//!
//! A [`SharedShard`] is made when its number is first used and is never freed: later shards use it again. That is what
//! lets a waker or an address be used on any thread at any time, also when its shard is long gone. The table holds at
//! most [`SHARD_NUMBER_COUNT`] of them, as many as ever lived at one time.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::context;
use super::id::{SHARD_NUMBER_COUNT, ShardNumber};
use crate::inject::handshake::{Activity, Announce, Handshake};
use crate::inject::queue::Queue;
use crate::inject::wakes::Wakes;
use crate::primitives::CacheAligned;
use crate::sys;
use crate::task::TaskId;

/// Work for a shard from a thread that is none of its runtime's shards.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The part of a shard that other threads may touch.
pub(crate) struct SharedShard {
    /// Who rings the doorbell, and whether anything was published since the shard last looked.
    pub(crate) handshake: Handshake,
    /// Tasks woken from other threads.
    pub(crate) wakes: Wakes,
    /// Closures from other threads. Closed while no shard uses this number.
    pub(crate) jobs: Queue<Job>,
    /// The eventfd of the shard that uses the number now; -1 while none does.
    ///
    /// Invariant: a thread that claimed the bell ([`Announce::Ring`]) finds the descriptor open until it has written
    /// to it, because the shard closes it only after it has received every ring that was claimed.
    doorbell: AtomicI32,
    /// Messages from outside the runtime whose senders do not wait, and that have not arrived yet.
    outside: AtomicUsize,
    /// The shard is in a section that blocks its thread.
    blocked: AtomicBool,
    /// The shard has nothing to do and watches for its peers.
    watching: CacheAligned<AtomicBool>,
    /// Where the next user of this number goes on counting generations.
    generation: AtomicU64,
}

static TABLE: [OnceLock<&'static SharedShard>; SHARD_NUMBER_COUNT as usize] =
    [const { OnceLock::new() }; SHARD_NUMBER_COUNT as usize];

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers {
    unused: Vec::new(),
    next: 0,
});

#[derive(Debug)]
struct Numbers {
    unused: Vec<u16>,
    next: u16,
}

/// A number, held by one shard from before its thread starts until its teardown is over.
#[derive(Debug)]
pub(crate) struct Lease {
    number: ShardNumber,
    shared: &'static SharedShard,
}

impl Lease {
    /// Takes a free number, or `None` when 1024 shards are alive.
    pub(crate) fn take() -> Option<Self> {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let index = numbers.unused.pop().or_else(|| {
            let next = numbers.next;
            (next < SHARD_NUMBER_COUNT).then(|| {
                numbers.next += 1;
                next
            })
        })?;
        let shared =
            TABLE[usize::from(index)].get_or_init(|| Box::leak(Box::new(SharedShard::new())));
        Some(Self {
            number: ShardNumber::new(index),
            shared,
        })
    }

    pub(crate) fn number(&self) -> ShardNumber {
        self.number
    }

    pub(crate) fn shared(&self) -> &'static SharedShard {
        self.shared
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        NUMBERS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .unused
            .push(self.number.index());
    }
}

impl SharedShard {
    fn new() -> Self {
        let jobs = Queue::new();
        drop(jobs.close());
        let handshake = Handshake::new();
        handshake.close();
        Self {
            handshake,
            wakes: Wakes::new(),
            jobs,
            doorbell: AtomicI32::new(-1),
            outside: AtomicUsize::new(0),
            blocked: AtomicBool::new(false),
            watching: CacheAligned::new(AtomicBool::new(false)),
            // Generation zero marks free slots everywhere.
            generation: AtomicU64::new(1),
        }
    }

    /// Whether the shard says that it blocks its thread right now.
    pub(crate) fn is_blocked(&self) -> bool {
        // ORDERING: Relaxed; a hint for placement and reports, which nothing else is read by.
        self.blocked.load(Ordering::Relaxed)
    }

    /// For the shard itself.
    pub(crate) fn set_blocked(&self, blocked: bool) {
        // ORDERING: Relaxed; see `is_blocked`.
        self.blocked.store(blocked, Ordering::Relaxed);
    }

    /// Whether the shard has something to do, from which a message may come.
    pub(crate) fn is_at_work(&self) -> bool {
        match self.handshake.activity() {
            // ORDERING: Relaxed; a hint. Who is misled sleeps too soon, or watches for as long as it takes to look again.
            Activity::Awake => !self.watching.load(Ordering::Relaxed),
            Activity::HasNews => true,
            Activity::Asleep | Activity::Ended => false,
        }
    }

    /// For the shard itself.
    pub(crate) fn set_watching(&self, watching: bool) {
        // ORDERING: Relaxed; see `is_at_work`.
        self.watching.store(watching, Ordering::Relaxed);
    }

    /// The shard opens for other threads. Returns the generation to go on from.
    pub(crate) fn open(&self, doorbell: RawFd) -> u64 {
        // ORDERING: Relaxed; published to other threads by `reopen` below, whose word every ringer reads first.
        self.doorbell.store(doorbell, Ordering::Relaxed);
        self.handshake.reopen();
        self.jobs.reopen();
        // ORDERING: Relaxed; the mutex around the numbers orders one user of the number before the next.
        self.generation.load(Ordering::Relaxed)
    }

    /// Keeps the count of generations for the next user of the number.
    pub(crate) fn keep_generation(&self, next: u64) {
        // ORDERING: Relaxed; see `open`.
        self.generation.store(next, Ordering::Relaxed);
    }

    /// Whether a generation is known to be of an earlier user of the number, whose shard has ended.
    pub(crate) fn is_inherited(&self, generation: u64) -> bool {
        // ORDERING: Relaxed; it only rises. Who sees an old value takes what has ended for alive, and is told otherwise by the
        // shard.
        generation < self.generation.load(Ordering::Relaxed)
    }

    /// Tells the shard that something was published for it; rings its doorbell if it sleeps.
    pub(crate) fn notify(&self) {
        match self.handshake.announce() {
            Announce::Ring => {
                // ORDERING: Relaxed; the claim in `announce` read the word that `open` wrote after the store.
                sys::ring(self.doorbell.load(Ordering::Relaxed));
                context::with(|shard| shard.counters.doorbells_sent.add(1));
            }
            Announce::Seen => {
                context::with(|shard| shard.counters.doorbells_elided.add(1));
            }
            Announce::Closed => {}
        }
    }

    /// Wakes the shard if it sleeps and nobody has woken it yet; true if this was the call that did.
    pub(crate) fn wake_if_asleep(&self) -> bool {
        if !self.handshake.is_asleep() {
            return false;
        }
        let claimed = self.handshake.announce() == Announce::Ring;
        if claimed {
            // ORDERING: Relaxed; as in `notify`.
            sys::ring(self.doorbell.load(Ordering::Relaxed));
        }
        claimed
    }

    /// Counts one more message from outside, unless there are `max` already.
    pub(crate) fn enter_outside(&self, max: usize) -> bool {
        // ORDERING: Relaxed; a bound, which publishes nothing.
        let counted = self
            .outside
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count < max).then_some(count + 1)
            });
        counted.is_ok()
    }

    pub(crate) fn leave_outside(&self) {
        // ORDERING: Relaxed; see `enter_outside`.
        self.outside.fetch_sub(1, Ordering::Relaxed);
    }

    /// Hands a closure to the shard, or back when the shard is gone.
    pub(crate) fn submit(&self, job: Job) -> Result<(), Job> {
        self.jobs.push(job)?;
        self.notify();
        Ok(())
    }
}

impl std::fmt::Debug for SharedShard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedShard")
            .field("handshake", &self.handshake)
            .finish_non_exhaustive()
    }
}

/// The shared part of a shard that is, or was, alive.
pub(crate) fn shared(number: ShardNumber) -> Option<&'static SharedShard> {
    TABLE[usize::from(number.index())].get().copied()
}

/// Wakes a task of another shard; does nothing if the task or the shard is gone.
pub(crate) fn wake_remote(id: TaskId) {
    if let Some(shared) = shared(id.shard())
        && shared.wakes.push(id.slot(), id.generation())
    {
        shared.notify();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_at_work_while_something_may_come_of_it() {
        let shared = SharedShard::new();
        assert!(!shared.is_at_work(), "it has not begun");
        shared.handshake.reopen();
        assert!(shared.is_at_work(), "there is news at the beginning");
        assert!(shared.handshake.take_pending());
        assert!(shared.is_at_work());
        shared.set_watching(true);
        assert!(!shared.is_at_work(), "it waits for others");
        assert_eq!(shared.handshake.announce(), Announce::Seen);
        assert!(shared.is_at_work(), "it waits no more");
        assert!(shared.handshake.take_pending());
        shared.set_watching(false);
        assert!(shared.handshake.prepare_sleep());
        assert!(!shared.is_at_work(), "it sleeps");
        assert_eq!(shared.handshake.announce(), Announce::Ring);
        assert!(shared.is_at_work(), "it is being woken");
    }
}
