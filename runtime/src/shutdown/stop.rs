//! What the shards of a runtime, and whoever waits for their end, share about it.
//!
//! Shards look at one byte in each turn. Everything else is behind a mutex, which they take when they come to another
//! phase, and so never while they run.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::{Phase, ShardReport, Stuck};
use crate::clock::{Clock, nanos};
use crate::shard::ShardId;
use crate::task::contain;

/// What ended a shard's own loop.
pub(crate) type Payload = Box<dyn Any + Send>;

/// A shard that waits for the kernel gives up by itself when the limit is over; it gets this much longer to say so.
const OWN_LIMIT_SLACK_NS: u64 = 1_000_000_000;

/// The end of one runtime.
#[derive(Debug)]
pub(crate) struct Stop {
    /// The phase of the runtime, at most `Cancelling`. It only rises, and is written with `state` locked.
    phase: AtomicU8,
    /// When draining ends at the latest. It only falls.
    drain_deadline_ns: AtomicU64,
    /// How long each phase of a shard may take, before whoever waits gives it up.
    limit: Duration,
    clock: Clock,
    state: Mutex<State>,
    /// Something in `state` has changed.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    shards: Vec<ShardEnd>,
    /// When tasks were to be cancelled.
    cancelled_ns: u64,
    /// When the last shard came to hold nothing.
    quiet_ns: u64,
    /// Those that wait for the shutdown to begin, by their places.
    waiting: BTreeMap<u64, Waker>,
    next_place: u64,
    failure: Option<Payload>,
}

/// How far a shard has come.
#[derive(Debug)]
struct ShardEnd {
    phase: Phase,
    since_ns: u64,
    /// It has no tasks. Of interest while draining only.
    is_idle: bool,
    /// Its peers need not wait for it: it holds nothing, or was given up.
    is_quiet: bool,
    report: ShardReport,
}

impl Stop {
    pub(crate) fn new(shards: impl Iterator<Item = ShardId>, limit: Duration) -> Self {
        let shards = shards.map(|shard| ShardEnd {
            phase: Phase::Running,
            since_ns: 0,
            is_idle: false,
            is_quiet: false,
            report: ShardReport::new(shard),
        });
        Self {
            phase: AtomicU8::new(Phase::Running as u8),
            drain_deadline_ns: AtomicU64::new(u64::MAX),
            limit,
            clock: Clock::Monotonic,
            state: Mutex::new(State {
                shards: shards.collect(),
                cancelled_ns: 0,
                quiet_ns: 0,
                waiting: BTreeMap::new(),
                next_place: 0,
                failure: None,
            }),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// The phase of the runtime: `Running`, `Draining` or `Cancelling`.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        // ORDERING: Acquire; pairs with the store in `advance`: who sees a phase finds the deadline of it, and in the
        // injector what was sent before it.
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Running,
            1 => Phase::Draining,
            _ => Phase::Cancelling,
        }
    }

    /// When draining ends at the latest.
    pub(crate) fn drain_deadline_ns(&self) -> u64 {
        // ORDERING: Relaxed; the first deadline is published with the phase, and later ones are announced to the shards.
        self.drain_deadline_ns.load(Ordering::Relaxed)
    }

    /// Lets tasks finish, until the grace is over. A second call can only shorten it.
    ///
    /// The caller wakes the shards.
    pub(crate) fn drain(&self, grace: Duration) {
        let deadline_ns = self.clock.now_ns().saturating_add(nanos(grace));
        // ORDERING: Relaxed; see `drain_deadline_ns`.
        self.drain_deadline_ns
            .fetch_min(deadline_ns, Ordering::Relaxed);
        self.advance(Phase::Draining, None);
    }

    /// Ends draining, if it had begun. The first failure is kept.
    ///
    /// The caller wakes the shards.
    pub(crate) fn cancel(&self, failure: Option<Payload>) {
        self.advance(Phase::Cancelling, failure);
    }

    fn advance(&self, phase: Phase, failure: Option<Payload>) {
        let mut state = self.lock();
        if state.failure.is_none() {
            state.failure = failure;
        }
        if self.phase() < phase {
            if phase == Phase::Cancelling {
                state.cancelled_ns = self.clock.now_ns();
            }
            // ORDERING: Release; pairs with the load in `phase`.
            self.phase.store(phase as u8, Ordering::Release);
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.changed.notify_all();
        // Wakers run outside the lock: they may be anyone's code.
        for waker in waiting.into_values() {
            contain(|| waker.wake());
        }
    }

    /// Remembers who waits for the shutdown; `Ready` if it has begun.
    pub(super) fn listen(&self, place: &mut Option<u64>, waker: &Waker) -> Poll<()> {
        let waker = waker.clone();
        let mut state = self.lock();
        if self.phase() > Phase::Running {
            return Poll::Ready(());
        }
        let place = *place.get_or_insert_with(|| {
            state.next_place += 1;
            state.next_place
        });
        let replaced = state.waiting.insert(place, waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    /// Forgets who waited.
    pub(super) fn forget(&self, place: u64) {
        let forgotten = self.lock().waiting.remove(&place);
        drop(forgotten);
    }

    /// A shard has come to have no tasks, or to have some again; true if none has any.
    pub(crate) fn note_idle(&self, shard: ShardId, is_idle: bool) -> bool {
        let mut state = self.lock();
        state.shards[shard.index()].is_idle = is_idle;
        state.shards.iter().all(|shard| shard.is_idle)
    }

    /// A shard has come to another phase.
    pub(crate) fn enter(&self, shard: ShardId, phase: Phase) {
        let now_ns = self.clock.now_ns();
        let mut state = self.lock();
        let end = &mut state.shards[shard.index()];
        end.phase = phase;
        end.since_ns = now_ns;
        if phase >= Phase::Waiting {
            end.is_quiet = true;
            state.note_quiet(now_ns);
        }
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn report(&self, shard: ShardId, add: impl FnOnce(&mut ShardReport)) {
        add(&mut self.lock().shards[shard.index()].report);
    }

    /// Whether no shard has to be waited for by its peers.
    pub(crate) fn is_all_quiet(&self) -> bool {
        self.lock().is_all_quiet()
    }

    /// Waits until draining is over, and sees to it that it ends in time.
    pub(crate) fn await_cancelling(&self) {
        let mut state = self.lock();
        while self.phase() < Phase::Cancelling {
            let left_ns = self.drain_deadline_ns().saturating_sub(self.clock.now_ns());
            if left_ns == 0 {
                // The shards see to it themselves, unless one alone is left and it does not answer.
                drop(state);
                return self.cancel(None);
            }
            state = self.wait(state, left_ns);
        }
    }

    /// Waits until every shard has ended or was given up. `wake_all` wakes the shards when one was given up.
    pub(crate) fn await_end(&self, wake_all: impl Fn()) {
        let mut state = self.lock();
        loop {
            let now_ns = self.clock.now_ns();
            let (given_up, next_ns) = state.give_up_late(now_ns, nanos(self.limit));
            if given_up {
                drop(state);
                wake_all();
                state = self.lock();
                continue;
            }
            let Some(next_ns) = next_ns else { return };
            state = self.wait(state, next_ns.saturating_sub(now_ns).max(1));
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit_ns: u64) -> MutexGuard<'a, State> {
        let waited = self
            .changed
            .wait_timeout(state, Duration::from_nanos(limit_ns));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn has_closed(&self, shard: ShardId) -> bool {
        self.lock().shards[shard.index()].phase == Phase::Closed
    }

    pub(crate) fn reports(&self) -> Vec<ShardReport> {
        let state = self.lock();
        state
            .shards
            .iter()
            .map(|shard| shard.report.clone())
            .collect()
    }

    pub(crate) fn take_failure(&self) -> Option<Payload> {
        self.lock().failure.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, so a poisoned one is as consistent as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_all_quiet(&self) -> bool {
        self.shards.iter().all(|shard| shard.is_quiet)
    }

    fn note_quiet(&mut self, now_ns: u64) {
        if self.quiet_ns == 0 && self.is_all_quiet() {
            self.quiet_ns = now_ns;
        }
    }

    /// Gives up the shards whose time is over. Returns whether there was one, and when the next one's is; `None` if no
    /// shard has to be waited for any more.
    fn give_up_late(&mut self, now_ns: u64, limit_ns: u64) -> (bool, Option<u64>) {
        let mut given_up = false;
        let mut next_ns = None;
        let all_quiet = self.is_all_quiet();
        for end in &mut self.shards {
            if end.phase == Phase::Closed || end.report.stuck.is_some() {
                continue;
            }
            let due_ns = match end.phase {
                Phase::Running | Phase::Draining | Phase::Cancelling => {
                    end.since_ns.max(self.cancelled_ns).saturating_add(limit_ns)
                }
                Phase::Quiescing => end
                    .since_ns
                    .saturating_add(limit_ns)
                    .saturating_add(OWN_LIMIT_SLACK_NS),
                // It waits for shards that have limits of their own.
                Phase::Waiting if !all_quiet => u64::MAX,
                Phase::Waiting | Phase::Closed => end
                    .since_ns
                    .max(self.quiet_ns)
                    .saturating_add(limit_ns)
                    .saturating_add(OWN_LIMIT_SLACK_NS),
            };
            if now_ns < due_ns {
                next_ns = Some(next_ns.map_or(due_ns, |next: u64| next.min(due_ns)));
                continue;
            }
            given_up = true;
            end.is_quiet = true;
            let since_ns = end.since_ns.max(self.cancelled_ns);
            end.report.stuck = Some(Stuck {
                shard: end.report.shard(),
                phase: end.phase,
                since: Duration::from_nanos(now_ns.saturating_sub(since_ns)),
            });
        }
        self.note_quiet(now_ns);
        (given_up, next_ns)
    }
}
