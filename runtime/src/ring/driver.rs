//! The I/O driver of one shard: the operations in flight and the backend that runs them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::Waker;

use super::backend::{AnyBackend, Backend, Wait};
use super::inflight::{Inflight, Key, Polled};
use super::op::{Effects, Operation, Outcome};
use super::ops::doorbell::{DoorbellPoll, DoorbellRead};
use super::payload::Garbage;
use super::pool::{BufferPool, BufferPoolConfig};
use crate::task::TaskId;

/// The most often one turn enters the kernel. Each enter takes a queue full of entries and runs about twenty deferred
/// completions; what is left after this many waits for the next turn, so that tasks are not kept waiting.
const ENTERS_PER_TURN_MAX: usize = 8;

/// All I/O of one shard.
///
/// Lives in a `RefCell` of the shard. No method calls into code of users: what [`turn`](Self::turn) leaves in the
/// effects, and what [`drop_handle`](Self::drop_handle) returns, is run or dropped by the caller once the borrow has
/// ended.
///
/// Dropping the driver frees all but the operations the kernel still has: those are leaked. A shard that wants none
/// of them to leak calls [`begin_teardown`](Self::begin_teardown) and takes turns until [`live_ops`](Self::live_ops)
/// is zero.
#[derive(Debug)]
pub(crate) struct Driver {
    // Declared first: the ring closes before the memory it knows of is looked at.
    backend: AnyBackend,
    inflight: Inflight,
    doorbell: Option<Doorbell>,
    /// What came up outside of a turn; the next turn hands it out.
    deferred: Effects,
    pool: Pool,
}

/// The receive buffers of the shard.
#[derive(Debug)]
enum Pool {
    /// Nobody asked for one yet.
    Unmade(BufferPoolConfig),
    Made(Rc<BufferPool>),
    /// The backend has no receives that take buffers, or the system no memory.
    Unavailable,
}

/// The read of the eventfd by which other threads wake this shard.
#[derive(Debug)]
struct Doorbell {
    fd: RawFd,
    waiting: DoorbellWait,
    count: u64,
}

#[derive(Debug)]
enum DoorbellWait {
    /// A read is in flight: the normal case.
    Reading(Key<DoorbellRead>),
    /// The kernel would not wait in a read of this descriptor, so readiness is awaited first.
    Polling(Key<DoorbellPoll>),
    /// The driver is closing.
    Over,
}

impl Driver {
    /// Makes the driver of the calling thread's shard, on a backend made on the same thread.
    pub(crate) fn new(backend: AnyBackend, pool: BufferPoolConfig) -> Driver {
        Driver {
            backend,
            inflight: Inflight::new(),
            doorbell: None,
            deferred: Effects::default(),
            pool: Pool::Unmade(pool),
        }
    }

    /// Queues an operation. It reaches the kernel with the next turn.
    pub(crate) fn start<T: Operation>(&mut self, operation: T, waker: Waker) -> Key<T> {
        self.inflight.start(operation, Some(waker))
    }

    /// Queues an operation of many completions. Whom to wake is told with [`watch`](Self::watch).
    pub(crate) fn start_multi<T: Operation>(&mut self, operation: T) -> Key<T> {
        self.inflight.start(operation, None)
    }

    /// Takes the result of an operation if it ended.
    pub(crate) fn poll<T: Operation>(&mut self, key: Key<T>, waker: &Waker) -> Polled<T> {
        self.inflight.poll(key, waker)
    }

    /// Sets whom to wake when the operation ends. Returns the waker it replaces.
    pub(crate) fn set_waker<T: Operation>(&mut self, key: &Key<T>, waker: Waker) -> Option<Waker> {
        self.inflight.set_waker(key, waker)
    }

    /// Tells whom to wake at the next completion of an operation of many; gives the waker back if it has ended.
    pub(crate) fn watch<T: Operation>(
        &mut self,
        key: &Key<T>,
        waker: Waker,
    ) -> Result<Option<Waker>, Waker> {
        self.inflight.watch(key, waker)
    }

    /// The first outcome of an operation that goes on, or has ended.
    pub(crate) fn first_outcome<T: Operation>(&self, key: &Key<T>) -> Option<Outcome> {
        self.inflight.first_outcome(key)
    }

    /// The shard's receive buffers, made when they are first asked for. `None` where they cannot be had.
    pub(crate) fn pool(&mut self) -> Option<&Rc<BufferPool>> {
        if let Pool::Unmade(config) = self.pool {
            self.pool = match self.backend.make_pool(&config) {
                Ok(pool) => Pool::Made(pool),
                // Receives fall back to buffers from the heap, one at a time.
                Err(_) => Pool::Unavailable,
            };
        }
        match &self.pool {
            Pool::Made(pool) => Some(pool),
            Pool::Unmade(_) | Pool::Unavailable => None,
        }
    }

    /// How many receive buffers there are, and how many of them are not lent out. Zero until the first is needed.
    pub(crate) fn pool_counts(&self) -> (usize, usize) {
        match &self.pool {
            Pool::Made(pool) => (pool.count(), pool.free_count()),
            Pool::Unmade(_) | Pool::Unavailable => (0, 0),
        }
    }

    /// Whether sends without copying are available.
    pub(crate) fn has_zero_copy(&self) -> bool {
        self.backend.has_zero_copy()
    }

    /// Cancels an operation nobody waits for any more. Returns what can be dropped right away.
    pub(crate) fn drop_handle<T: Operation>(&mut self, key: Key<T>) -> Garbage {
        self.inflight.drop_handle(key)
    }

    /// Lets an operation run to its end although nobody waits for it. Returns what can be dropped right away.
    pub(crate) fn detach<T: Operation>(&mut self, key: Key<T>) -> Garbage {
        self.inflight.detach(key)
    }

    /// Whether a turn has something to do without waiting: operations or cancels to hand over, completions to take, or
    /// completions that the kernel holds back until it is entered. Two loads and no system call: what a spinning
    /// shard watches.
    pub(crate) fn needs_enter(&self) -> bool {
        self.must_enter() || self.backend.has_completions()
    }

    /// Asks a backend that shows nothing by itself whether something happened; what did is left to the next turn.
    /// One system call, and none where [`needs_enter`](Self::needs_enter) tells.
    pub(crate) fn look(&mut self) -> bool {
        // What is broken is met again, and reported, by the turn.
        self.backend.is_blind()
            && (self.backend.enter(Wait::Poll).is_err() || self.backend.has_completions())
    }

    /// Whether operations or cancels wait to be handed over.
    pub(crate) fn has_unsubmitted(&self) -> bool {
        self.inflight.wants_flush()
    }

    /// Hands over what is queued, waits as told, and takes note of what completed.
    ///
    /// Does not wait while anything is left to hand over or to run, and makes no system call at all when polled with
    /// nothing to do.
    ///
    /// # Errors
    ///
    /// If the backend broke down. The driver is of no further use; its memory stays valid.
    pub(crate) fn turn(&mut self, wait: Wait, effects: &mut Effects) -> io::Result<u32> {
        let mut reaped = 0;
        effects.append(&mut self.deferred);
        let mut wait = if effects.is_empty() { wait } else { Wait::Poll };
        let mut is_due = self.backend.is_blind();
        for _ in 0..ENTERS_PER_TURN_MAX {
            if !self.flush() {
                wait = Wait::Poll;
            }
            if wait != Wait::Poll || self.backend.wants_enter() || is_due {
                self.backend.enter(wait)?;
            }
            is_due = false;
            reaped += self.reap(effects);
            if !self.must_enter() {
                break;
            }
            wait = Wait::Poll;
        }
        self.answer_doorbell()?;
        Ok(reaped)
    }

    /// Moves cancels, then operations, from their queues to the backend. Returns whether all of them fitted.
    pub(crate) fn flush(&mut self) -> bool {
        let Driver {
            backend, inflight, ..
        } = self;
        inflight.flush(|entry| backend.push(entry))
    }

    /// Keeps a read of `eventfd` in flight from now on. It must stay open as long as the driver.
    pub(crate) fn arm_doorbell(&mut self, eventfd: RawFd) {
        assert!(self.doorbell.is_none(), "a driver has one doorbell");
        let key = self.inflight.start(DoorbellRead::new(eventfd), None);
        self.doorbell = Some(Doorbell {
            fd: eventfd,
            waiting: DoorbellWait::Reading(key),
            count: 0,
        });
    }

    /// The sum of everything written to the doorbell so far.
    pub(crate) fn doorbell_count(&self) -> u64 {
        self.doorbell.as_ref().map_or(0, |doorbell| doorbell.count)
    }

    /// Cancels all operations, the doorbell's included, and whatever is started from now on.
    ///
    /// Turns have to follow until [`live_ops`](Self::live_ops) is zero. May be repeated to ask again.
    pub(crate) fn begin_teardown(&mut self) {
        self.inflight.cancel_all(&mut self.deferred);
    }

    /// The number of operations that are queued or with the kernel. Exact, and includes the doorbell.
    pub(crate) fn live_ops(&self) -> usize {
        self.inflight.live()
    }

    /// Tells of every operation that has not ended: its name, and the task that waits for it.
    pub(crate) fn each_operation(&self, tell: impl FnMut(&'static str, Option<TaskId>)) {
        self.inflight.each(tell);
    }

    /// What the kernel still has. Its memory and descriptors are leaked when the driver is dropped.
    pub(crate) fn leak_remaining(&mut self) -> LeakReport {
        let mut names = BTreeMap::new();
        for name in self.inflight.in_kernel() {
            *names.entry(name).or_default() += 1;
        }
        LeakReport {
            operations: names.values().sum(),
            names,
        }
    }

    /// How many completions named no running operation. Anything but zero is a bug of ours or the kernel's.
    #[cfg(test)]
    pub(crate) fn stale_completions(&self) -> u64 {
        self.inflight.stale()
    }

    /// The name of the backend.
    pub(crate) fn backend_name(&self) -> &'static str {
        self.backend.name()
    }

    /// Takes completions without handing anything over first.
    #[cfg(test)]
    pub(super) fn reap_only(&mut self, effects: &mut Effects) {
        self.reap(effects);
    }

    #[cfg(test)]
    pub(super) fn backend_mut(&mut self) -> &mut AnyBackend {
        &mut self.backend
    }

    fn must_enter(&self) -> bool {
        self.inflight.wants_flush() || self.backend.wants_enter()
    }

    /// Takes the completions there are; returns how many.
    fn reap(&mut self, effects: &mut Effects) -> u32 {
        let Driver {
            backend, inflight, ..
        } = self;
        let mut reaped = 0;
        backend.reap(|completion| {
            reaped += 1;
            inflight.complete(completion, effects);
        });
        reaped
    }

    /// Counts a ring of the doorbell and starts the next read.
    fn answer_doorbell(&mut self) -> io::Result<()> {
        let Some(doorbell) = &mut self.doorbell else {
            return Ok(());
        };
        doorbell.waiting = match std::mem::replace(&mut doorbell.waiting, DoorbellWait::Over) {
            DoorbellWait::Over => return Ok(()),
            DoorbellWait::Reading(key) => match self.inflight.poll(key, Waker::noop()) {
                Polled::Waiting(key) | Polled::NewWaker(key) => DoorbellWait::Reading(key),
                Polled::Ready(read, outcome) => {
                    doorbell.count += read.count(outcome);
                    next_wait(&mut self.inflight, doorbell.fd, outcome)?
                }
            },
            DoorbellWait::Polling(key) => match self.inflight.poll(key, Waker::noop()) {
                Polled::Waiting(key) | Polled::NewWaker(key) => DoorbellWait::Polling(key),
                Polled::Ready(_, outcome) => next_wait(&mut self.inflight, doorbell.fd, outcome)?,
            },
        };
        Ok(())
    }
}

/// How to wait for the doorbell after a wait that ended with `outcome`.
fn next_wait(inflight: &mut Inflight, fd: RawFd, outcome: Outcome) -> io::Result<DoorbellWait> {
    if inflight.is_closing() {
        return Ok(DoorbellWait::Over);
    }
    match outcome.into_result() {
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
            // Reading again at once would spin on kernels that do not wait in reads of non-blocking descriptors.
            Ok(DoorbellWait::Polling(
                inflight.start(DoorbellPoll::new(fd), None),
            ))
        }
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::ECANCELED)) => {
            Err(error)
        }
        Ok(_) | Err(_) => Ok(DoorbellWait::Reading(
            inflight.start(DoorbellRead::new(fd), None),
        )),
    }
}

/// The operations that a driver leaks because the kernel did not give them back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeakReport {
    /// How many there are.
    pub(crate) operations: usize,
    /// How many there are of each name.
    names: BTreeMap<&'static str, usize>,
}

impl fmt::Display for LeakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} operations leaked", self.operations)?;
        for (name, count) in &self.names {
            write!(f, ", {count} {name}")?;
        }
        Ok(())
    }
}
