//! Operations that no readiness can tell of, on threads that may block.
//!
//! A regular file is always ready and blocks all the same, and there is no way to open a file without waiting. Such
//! operations go to the runtime's blocking pool. A job holds the entry: the memory it names belongs to the operation's
//! record, as if the kernel had it, until the job has put its result into the outbox. Every job does that, also one that
//! is taken out of the pool's line or dropped with it: that one ends as cancelled.
#![expect(
    unsafe_code,
    reason = "lets a thread of the pool act on addresses in the shard's records"
)]

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mio::Waker;

use super::file_call;
use super::poller::Poller;
use crate::blocking::pool::{Pool, Ticket};
use crate::ring::backend::EntryKind;

/// The operations of one shard that the pool has.
pub(super) struct Jobs {
    pool: Arc<Pool>,
    outbox: Arc<Outbox>,
    /// By token.
    tickets: BTreeMap<u64, Ticket>,
}

/// What a request to cancel came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Revoked {
    /// It never begins: its end is in the outbox.
    InTime,
    /// It runs, and nothing stops it.
    TooLate,
    /// The pool has no such operation.
    Unknown,
}

/// The results of jobs, for the shard to fetch.
struct Outbox {
    state: Mutex<Results>,
}

struct Results {
    done: Vec<(u64, i32)>,
    /// Ends the shard's wait. Used when the first result of a batch is put in.
    waker: Waker,
}

/// One operation on its way through the pool.
struct Call {
    token: u64,
    kind: EntryKind,
    outbox: Arc<Outbox>,
    result: i32,
}

// SAFETY: what is not `Send` are the addresses in the entry. The record that the entry describes keeps them valid, and
// neither reads nor writes what they name, until the final completion of the entry. That is made from the result this
// value puts into the outbox when it is dropped, after the last access.
unsafe impl Send for Call {}

impl Call {
    fn run(mut self) {
        self.result = file_call::run(self.kind);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.outbox.put(self.token, self.result);
    }
}

impl Jobs {
    pub(super) fn new(pool: Arc<Pool>, poller: &Poller) -> io::Result<Jobs> {
        let state = Results {
            done: Vec::new(),
            waker: poller.waker()?,
        };
        Ok(Jobs {
            pool,
            outbox: Arc::new(Outbox {
                state: Mutex::new(state),
            }),
            tickets: BTreeMap::new(),
        })
    }

    /// How many operations the pool has.
    pub(super) fn len(&self) -> usize {
        self.tickets.len()
    }

    /// Hands an operation to the pool.
    pub(super) fn submit(&mut self, token: u64, kind: EntryKind) {
        let call = Call {
            token,
            kind,
            outbox: self.outbox.clone(),
            result: -libc::ECANCELED,
        };
        // A pool that takes no more drops the job, which ends the operation.
        if let Ok(ticket) = self.pool.submit(Box::new(move || call.run())) {
            self.tickets.insert(token, ticket);
        }
    }

    /// Takes an operation back if it has not begun.
    pub(super) fn revoke(&mut self, token: u64) -> Revoked {
        let Some(&ticket) = self.tickets.get(&token) else {
            return Revoked::Unknown;
        };
        match self.pool.revoke(ticket) {
            Some(job) => {
                drop(job);
                Revoked::InTime
            }
            None => Revoked::TooLate,
        }
    }

    /// Fetches what has ended, oldest first.
    pub(super) fn collect(&mut self, mut sink: impl FnMut(u64, i32)) {
        let done = std::mem::take(&mut self.outbox.lock().done);
        for (token, result) in done {
            self.tickets.remove(&token);
            sink(token, result);
        }
    }

    /// Wakes through another poller from now on.
    pub(super) fn move_to(&self, poller: &Poller) -> io::Result<()> {
        let mut results = self.outbox.lock();
        results.waker = poller.waker()?;
        if results.done.is_empty() {
            return Ok(());
        }
        results.waker.wake()
    }
}

impl Outbox {
    fn put(&self, token: u64, result: i32) {
        let mut results = self.lock();
        results.done.push((token, result));
        if results.done.len() == 1 {
            // Fails if the shard has gone, and the poller with it: then nobody waits.
            results.waker.wake().ok();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Results> {
        // No foreign code runs under the lock, so a poisoned one is as consistent as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
