//! The backend for systems that refuse io_uring: system calls that do not block, and epoll to say when to try them.
//!
//! Where io_uring is asked to do a thing and says when it is done, this backend does it itself as soon as it can be
//! done, and then reports like io_uring: same results, same flags, same silence until the next reap. An operation is
//! tried when it is handed over; if its descriptor is not ready it joins the line of its descriptor and direction
//! ([`waiting`]), and is tried again whenever the descriptor becomes ready ([`poller`]). [`work`] makes the calls. What no
//! readiness can tell of, files above all, goes to the blocking pool ([`jobs`], [`file_call`]).
//!
//! Four rules hold throughout:
//!
//! * An event is a hint. Only a system call ends an operation, so late events, events meant for an earlier owner of a
//!   descriptor's number, and events too many are harmless.
//! * Whoever starts to wait has the descriptor watched anew, whatever was watched before. Nothing has to be undone when
//!   a descriptor is closed, and nothing that is remembered here can be wrong about a number that was given out again.
//! * Operations of one direction pass in the order in which they came.
//! * One visit does a bounded amount of work. What is left is noted, and [`Backend::wants_enter`] tells of it.

mod call;
mod file_call;
mod jobs;
mod poller;
mod transfer;
mod waiting;
mod work;

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use self::jobs::{Jobs, Revoked};
use self::poller::{Poller, Ready, Wanted};
use self::waiting::{Lane, Place, Waiting};
use self::work::{Attempted, Left, Work};
use super::RingConfig;
use super::backend::{Backend, Entry, EntryKind, Wait};
use super::op::{Completion, Flags};
use super::pool::{BufferPool, BufferPoolConfig};
use super::probe::BackendError;
use crate::blocking::pool::Pool;

/// How many operations of one lane pass in one go.
const OPERATIONS_PER_LANE: usize = 16;
/// How often in a row an enter with something to report leaves out looking for more.
const LOOKS_SKIPPED_MAX: u32 = 4;
/// How often an operation that no event helps is tried again while the shard has nothing else to do.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// How many events for nobody, from files that are out of reach, are put up with before the list is made anew.
const STRAYS_MAX: u32 = 16;

/// The operations of one shard, run by readiness.
#[derive(Debug)]
pub(crate) struct Epoll {
    poller: Poller,
    waiting: Waiting,
    jobs: Jobs,
    /// Entries not looked at yet.
    queue: VecDeque<Entry>,
    /// Invariant: `queue` is never longer.
    queue_max: usize,
    /// Lanes that have more to do without another event.
    unfinished: VecDeque<(RawFd, Lane)>,
    /// Lanes that no event helps, to be tried again by every visit.
    retries: Vec<(RawFd, Lane)>,
    completions: VecDeque<Completion>,
    /// The receive buffers of the shard, once somebody asked for them.
    pool: Option<Rc<BufferPool>>,
    events: Vec<Ready>,
    looks_skipped: u32,
    /// Events for descriptors that nobody waits for and that cannot be forgotten: they were closed, but a duplicate
    /// keeps the file open and the kernel reporting.
    strays: u32,
}

impl Epoll {
    pub(crate) fn new(config: &RingConfig, pool: Arc<Pool>) -> Result<Epoll, BackendError> {
        let poller = Poller::new().map_err(BackendError::epoll)?;
        Ok(Epoll {
            jobs: Jobs::new(pool, &poller).map_err(BackendError::epoll)?,
            poller,
            waiting: Waiting::default(),
            queue: VecDeque::new(),
            queue_max: usize::try_from(config.sq_entries.max(1)).unwrap_or(usize::MAX),
            unfinished: VecDeque::new(),
            retries: Vec::new(),
            completions: VecDeque::new(),
            pool: None,
            events: Vec::new(),
            looks_skipped: 0,
            strays: 0,
        })
    }

    /// Takes up one entry.
    fn begin(&mut self, entry: &Entry) {
        if let EntryKind::Cancel { target } = entry.kind {
            let found = self.cancel(target);
            return self.post(entry.token, found, Flags::default());
        }
        if file_call::always_blocks(entry.kind) {
            return self.jobs.submit(entry.token, entry.kind);
        }
        let mut work = Work::new(entry.token, entry.kind);
        let lane = work.lane();
        let is_next =
            lane.is_none_or(|(fd, lane)| lane.is_poll() || self.waiting.is_free(fd, lane));
        if is_next && !work.waits_first() {
            match work.attempt(self.pool.as_deref()) {
                Attempted::Finished(result, flags) => {
                    self.post(work.token, result, flags);
                    if let EntryKind::Shutdown { fd, .. } = entry.kind {
                        // A send that waits for room hears of no event, and has failed.
                        self.run_lane(fd, Lane::Read, true);
                        self.run_lane(fd, Lane::Write, true);
                    }
                    return;
                }
                Attempted::Blocks => return self.jobs.submit(work.token, work.kind()),
                // If there is more, the watch tells at once.
                Attempted::Progressed(result, flags, _) => self.post(work.token, result, flags),
                Attempted::Unheard => self.retries.extend(lane),
                Attempted::Blocked => {}
            }
        }
        let (fd, lane) = lane.expect("an operation that may block has a descriptor");
        match self.watch(fd, lane) {
            Ok(()) => self.waiting.push(fd, lane, work),
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                self.post(work.token, -errno, Flags::default());
            }
        }
    }

    /// Has a descriptor watched for the sake of one more lane.
    fn watch(&self, fd: RawFd, lane: Lane) -> io::Result<()> {
        if !self.waiting.is_free(fd, lane) {
            // Those ahead have it watched, and it is still the same file: they keep it open.
            return Ok(());
        }
        let wanted = self.wanted(fd);
        let wanted = match lane {
            Lane::Read | Lane::PollRead => Wanted {
                reads: true,
                ..wanted
            },
            Lane::Write => Wanted {
                writes: true,
                ..wanted
            },
            // A poll also ends when the peer is done, which is news of the reading side.
            Lane::PollWrite => Wanted {
                reads: true,
                writes: true,
            },
        };
        self.poller.watch(fd, wanted)
    }

    /// What a descriptor has to be watched for.
    fn wanted(&self, fd: RawFd) -> Wanted {
        let is_taken = |lane| !self.waiting.is_free(fd, lane);
        Wanted {
            reads: is_taken(Lane::Read) || is_taken(Lane::PollRead) || is_taken(Lane::PollWrite),
            writes: is_taken(Lane::Write) || is_taken(Lane::PollWrite),
        }
    }

    /// Ends a waiting operation early. Returns what the request for it completes with.
    fn cancel(&mut self, target: u64) -> i32 {
        let Some(at) = self.waiting.find(target) else {
            return match self.jobs.revoke(target) {
                Revoked::InTime => 0,
                Revoked::TooLate => -libc::EALREADY,
                Revoked::Unknown => -libc::ENOENT,
            };
        };
        let work = self.waiting.remove(at);
        self.post(target, work.cancelled(), Flags::default());
        0
    }

    /// Lets the operations of a lane pass until one has to wait, or the lane has had its share.
    fn run_lane(&mut self, fd: RawFd, lane: Lane, is_ending: bool) {
        for _ in 0..OPERATIONS_PER_LANE {
            let Some(at) = self.waiting.first(fd, lane) else {
                return;
            };
            if self.run_operation(at, is_ending) == Step::Waits {
                return;
            }
        }
        if !self.waiting.is_free(fd, lane) && self.waiting.note_unfinished(fd, lane) {
            self.unfinished.push_back((fd, lane));
        }
    }

    /// Ends those of a descriptor's polls that are true.
    fn run_polls(&mut self, fd: RawFd, lane: Lane) {
        let mut next = self.waiting.first(fd, lane);
        while let Some(at) = next {
            next = self.waiting.next(at);
            self.run_operation(at, false);
        }
    }

    /// Tries a waiting operation.
    fn run_operation(&mut self, at: Place, is_ending: bool) -> Step {
        let work = self.waiting.work(at);
        let (token, lane) = (work.token, work.lane());
        match work.attempt(self.pool.as_deref()) {
            Attempted::Finished(result, flags) => {
                self.waiting.remove(at);
                self.post(token, result, flags);
                Step::Ends
            }
            Attempted::Progressed(result, flags, left) => {
                self.post(token, result, flags);
                if left == Left::Perhaps || is_ending {
                    Step::GoesOn
                } else {
                    Step::Waits
                }
            }
            Attempted::Blocks => {
                let work = self.waiting.remove(at);
                self.jobs.submit(token, work.kind());
                Step::Ends
            }
            Attempted::Unheard => {
                self.retries
                    .extend(lane.filter(|lane| !self.retries.contains(lane)));
                Step::Waits
            }
            Attempted::Blocked => Step::Waits,
        }
    }

    /// Acts on one event.
    fn run_ready(&mut self, ready: Ready) -> io::Result<()> {
        let Ready { fd, is_ending, .. } = ready;
        if self.wanted(fd) == NOTHING {
            return self.ignore(fd);
        }
        // Polls come before the transfers that take away what makes them true.
        if ready.reads {
            self.run_polls(fd, Lane::PollRead);
        }
        if ready.writes || is_ending {
            self.run_polls(fd, Lane::PollWrite);
        }
        if ready.reads {
            self.run_lane(fd, Lane::Read, is_ending);
        }
        if ready.writes || is_ending {
            self.run_lane(fd, Lane::Write, false);
        }
        Ok(())
    }

    /// Sees to it that a descriptor nobody waits for causes no more events.
    fn ignore(&mut self, fd: RawFd) -> io::Result<()> {
        if self.poller.forget(fd).is_ok() {
            return Ok(());
        }
        self.strays += 1;
        if self.strays < STRAYS_MAX {
            return Ok(());
        }
        self.strays = 0;
        self.poller.reset()?;
        self.jobs.move_to(&self.poller)?;
        for fd in self.waiting.descriptors() {
            self.poller.watch(fd, self.wanted(fd))?;
        }
        Ok(())
    }

    /// Goes on where a lane had its share, or no event would tell.
    fn run_noted(&mut self) {
        for _ in 0..self.unfinished.len() {
            if let Some((fd, lane)) = self.unfinished.pop_front() {
                self.waiting.clear_unfinished(fd, lane);
                // Whether the stream has ended is not remembered: it is read until it says so.
                self.run_lane(fd, lane, true);
            }
        }
        for (fd, lane) in std::mem::take(&mut self.retries) {
            self.run_lane(fd, lane, true);
        }
    }

    /// Looks for events, and acts on them.
    fn look(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.looks_skipped = 0;
        let timeout = match timeout {
            _ if self.retries.is_empty() => timeout,
            Some(timeout) => Some(timeout.min(RETRY_INTERVAL)),
            None => Some(RETRY_INTERVAL),
        };
        let mut events = std::mem::take(&mut self.events);
        self.poller.wait(timeout, |ready| events.push(ready))?;
        for ready in events.drain(..) {
            self.run_ready(ready)?;
        }
        self.events = events;
        self.collect_jobs();
        Ok(())
    }

    fn collect_jobs(&mut self) {
        let Epoll {
            jobs, completions, ..
        } = self;
        jobs.collect(|token, result| {
            completions.push_back(Completion {
                token,
                result,
                flags: Flags::default(),
            });
        });
    }

    fn post(&mut self, token: u64, result: i32, flags: Flags) {
        self.completions.push_back(Completion {
            token,
            result,
            flags,
        });
    }
}

/// What became of an operation that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It has left the line.
    Ends,
    /// It did something, and can do more.
    GoesOn,
    /// It has to wait.
    Waits,
}

const NOTHING: Wanted = Wanted {
    reads: false,
    writes: false,
};

impl Backend for Epoll {
    fn push(&mut self, entry: &Entry) -> bool {
        let has_room = self.queue.len() < self.queue_max;
        if has_room {
            self.queue.push_back(*entry);
        }
        has_room
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        while let Some(entry) = self.queue.pop_front() {
            self.begin(&entry);
        }
        self.run_noted();
        self.collect_jobs();
        let has_news = !self.completions.is_empty() || !self.unfinished.is_empty();
        if has_news && self.looks_skipped < LOOKS_SKIPPED_MAX {
            self.looks_skipped += 1;
            return Ok(());
        }
        match wait {
            Wait::Until(timeout) | Wait::Gather { until: timeout, .. } if !has_news => {
                self.look(timeout)
            }
            Wait::Until(_) | Wait::Gather { .. } | Wait::Poll => self.look(Some(Duration::ZERO)),
        }
    }

    fn reap(&mut self, sink: impl FnMut(Completion)) {
        self.completions.drain(..).for_each(sink);
    }

    fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    fn wants_enter(&self) -> bool {
        !self.queue.is_empty() || !self.unfinished.is_empty()
    }

    fn is_blind(&self) -> bool {
        self.waiting.len() + self.jobs.len() > 0
    }

    fn make_pool(&mut self, config: &BufferPoolConfig) -> io::Result<Rc<BufferPool>> {
        let pool = BufferPool::with_list(config)?;
        self.pool = Some(Rc::clone(&pool));
        Ok(pool)
    }

    fn has_zero_copy(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "epoll"
    }
}
