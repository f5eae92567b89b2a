//! The threads and the line of jobs before them.
//!
//! One mutex guards everything. What is done under it is a push, a pop or a count, never a job, a drop of a job, or the
//! making of a thread: a shard that hands work over waits for nothing longer. A hand-over to an idle thread costs the
//! shard that thread's wake-up, and one to a new thread its making; both are dear beside a message, and small beside what
//! is worth a hand-over.
//!
//! No library has this: the pools that are kept up are global to the process or of a fixed size, have no line that can be
//! full and taken back from, and none reports, within a time, what is stuck at its end.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::{Clock, nanos};
use crate::shard::{Shard, context};
use crate::sys;
use crate::task::contain;

/// A closure for a thread of the pool. It tells whoever waits by itself, and so does its drop.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A place in the line: the number of the job, counted from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// What a pool is like.
#[derive(Clone, Debug)]
pub(crate) struct PoolConfig {
    pub(crate) threads_max: usize,
    pub(crate) queue_max: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) thread_name: String,
    /// The CPUs that threads may use: they are started by shards, whose pin they would inherit.
    pub(crate) cpus: Vec<usize>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            threads_max: 256,
            queue_max: 4096,
            keep_alive: Duration::from_secs(10),
            thread_name: String::new(),
            cpus: Vec::new(),
        }
    }
}

/// The blocking pool of one runtime. Shared by its shards, its handles and its own threads.
pub(crate) struct Pool {
    config: PoolConfig,
    clock: Clock,
    state: Mutex<State>,
    /// Idle threads wait here: for a job, or for the end.
    job_or_end: Condvar,
    /// Whoever closes the pool waits here for threads to end.
    ended: Condvar,
}

struct State {
    /// Invariant: rising tickets.
    line: VecDeque<(Ticket, Job)>,
    next: Ticket,
    /// Threads that have not said that they end, by the number they got; no handle yet for those just being made.
    threads: BTreeMap<u64, Option<thread::JoinHandle<()>>>,
    /// Threads in a wait on `job_or_end`; one that was woken counts until it has the lock.
    idle: usize,
    /// Jobs that run.
    running: usize,
    threads_made: u64,
    jobs_done: u64,
    closed: bool,
    /// Handles of threads that said they end, kept once the pool is closed, to be joined.
    to_join: Vec<thread::JoinHandle<()>>,
}

/// What a blocking pool has in hand, and has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BlockingCounts {
    /// Threads that were started and have not ended.
    pub threads: usize,
    /// Of these, threads that wait for a job.
    pub idle: usize,
    /// Jobs that wait for a thread.
    pub queued: usize,
    /// Jobs that run.
    pub running: usize,
    /// Jobs that have run, those that panicked included.
    pub done: u64,
}

/// What the end of a pool leaves to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolReport {
    /// Jobs that were in line, and never ran.
    pub(crate) dropped: usize,
    /// Jobs that still ran at the deadline. Their threads are left behind.
    pub(crate) stuck: usize,
}

impl Pool {
    pub(crate) fn new(config: PoolConfig) -> Self {
        Self {
            config,
            clock: Clock::Monotonic,
            state: Mutex::new(State {
                line: VecDeque::new(),
                next: Ticket(0),
                threads: BTreeMap::new(),
                idle: 0,
                running: 0,
                threads_made: 0,
                jobs_done: 0,
                closed: false,
                to_join: Vec::new(),
            }),
            job_or_end: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    /// Puts a job in line, or hands it back if the pool is closed or cannot have a single thread.
    ///
    /// For callers whose number of jobs is bounded by something else, such as operations in flight.
    pub(crate) fn submit(self: &Arc<Self>, job: Job) -> Result<Ticket, Job> {
        let mut state = self.lock();
        if state.closed {
            return Err(job);
        }
        let ticket = state.push(job);
        self.provide_thread(state, ticket)
    }

    /// Makes a job and puts it in line, if there is an idle thread or room in the line.
    pub(crate) fn try_submit<F>(
        self: &Arc<Self>,
        work: F,
        make: impl FnOnce(F) -> Job,
    ) -> Result<Ticket, F> {
        let mut state = self.lock();
        let waiting = state.line.len();
        let at_once = state.idle > waiting || state.threads.len() < self.config.threads_max;
        if state.closed || !(at_once || waiting < self.config.queue_max) {
            return Err(work);
        }
        let ticket = state.push(make(work));
        // Without any thread the job is dropped, which tells whoever waits for it.
        Ok(self.provide_thread(state, ticket).unwrap_or(ticket))
    }

    /// Takes a job out of the line; `None` if it has started, or was dropped.
    pub(crate) fn revoke(&self, ticket: Ticket) -> Option<Job> {
        self.lock().take(ticket)
    }

    /// The CPUs that a thread which belongs to no shard may use.
    pub(crate) fn cpus(&self) -> &[usize] {
        &self.config.cpus
    }

    pub(crate) fn counts(&self) -> BlockingCounts {
        let state = self.lock();
        BlockingCounts {
            threads: state.threads.len(),
            idle: state.idle,
            queued: state.line.len(),
            running: state.running,
            done: state.jobs_done,
        }
    }

    /// Ends the pool: drops what is in line, lets what runs finish for at most `limit`, and joins every thread that does.
    ///
    /// A second call finds a closed pool and waits again for what is left.
    pub(crate) fn close(&self, limit: Duration) -> PoolReport {
        let mut state = self.lock();
        state.closed = true;
        let dropped = std::mem::take(&mut state.line);
        self.job_or_end.notify_all();
        drop(state);
        let report = PoolReport {
            dropped: dropped.len(),
            stuck: 0,
        };
        drop_jobs(dropped);
        let limit_ns = nanos(limit);
        let deadline_ns = self.clock.now_ns().saturating_add(limit_ns);
        let mut state = self.lock();
        while !state.threads.is_empty() {
            let left = deadline_ns.saturating_sub(self.clock.now_ns());
            if left == 0 {
                break;
            }
            let waited = self.ended.wait_timeout(state, Duration::from_nanos(left));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let stuck = state.running;
        let to_join = std::mem::take(&mut state.to_join);
        drop(state);
        for thread in to_join {
            // It has said that it ends. Its panics were contained, job by job.
            drop(thread.join());
        }
        PoolReport { stuck, ..report }
    }

    /// Sees to it that the newest job of the line gets a thread, now or when one is done with another job.
    fn provide_thread(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        ticket: Ticket,
    ) -> Result<Ticket, Job> {
        if state.idle >= state.line.len() {
            drop(state);
            self.job_or_end.notify_one();
            return Ok(ticket);
        }
        if state.threads.len() == self.config.threads_max {
            return Ok(ticket);
        }
        let number = state.threads_made;
        state.threads_made += 1;
        state.threads.insert(number, None);
        drop(state);
        let pool = self.clone();
        let name = format!("{}-pool-{number}", self.config.thread_name);
        let made = thread::Builder::new()
            .name(name)
            .spawn(move || pool.serve(number));
        if let Ok(thread) = made {
            // A thread that has said already that it ends has no place any more; its handle is let go of.
            if let Some(place) = self.lock().threads.get_mut(&number) {
                *place = Some(thread);
            }
            return Ok(ticket);
        }
        self.do_without(number, ticket)
    }

    /// The machine refused a thread. Others take the job when they can; without any other nobody would.
    fn do_without(&self, number: u64, ticket: Ticket) -> Result<Ticket, Job> {
        let mut state = self.lock();
        state.threads.remove(&number);
        if !state.threads.is_empty() {
            return Ok(ticket);
        }
        let own = state.take(ticket);
        let stranded = std::mem::take(&mut state.line);
        drop(state);
        if !stranded.is_empty() {
            // Others counted on the thread that was not made. The drop of a job may run anything, and our caller may have
            // parts of its shard borrowed.
            let drop_them = move || drop_jobs(stranded);
            let here = context::with(Shard::shared);
            match here {
                Some(shard) => drop(shard.submit(Box::new(drop_them))),
                None => drop_them(),
            }
        }
        own.map_or(Ok(ticket), Err)
    }

    /// The life of a thread of the pool.
    fn serve(self: Arc<Self>, number: u64) {
        // A thread that may not leave its maker's CPU still does its work, later.
        let _still_pinned = sys::allow(&self.config.cpus);
        let mut state = self.lock();
        loop {
            if let Some((_, job)) = state.line.pop_front() {
                state.running += 1;
                drop(state);
                contain(job);
                state = self.lock();
                state.running -= 1;
                state.jobs_done += 1;
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let waited = self.job_or_end.wait_timeout(state, self.config.keep_alive);
            let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle -= 1;
            // A job may have come in the same moment: whoever sent it counted on this thread.
            if waited.timed_out() && state.line.is_empty() {
                break;
            }
        }
        let own = state.threads.remove(&number).flatten();
        if state.closed {
            state.to_join.extend(own);
        }
        drop(state);
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, so a poisoned one is as consistent as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, job: Job) -> Ticket {
        let ticket = self.next;
        self.next = Ticket(ticket.0 + 1);
        self.line.push_back((ticket, job));
        ticket
    }

    fn take(&mut self, ticket: Ticket) -> Option<Job> {
        let place = self.line.binary_search_by_key(&ticket, |entry| entry.0);
        self.line.remove(place.ok()?).map(|entry| entry.1)
    }
}

fn drop_jobs(jobs: VecDeque<(Ticket, Job)>) {
    for (_, job) in jobs {
        contain(|| drop(job));
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("config", &self.config)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
