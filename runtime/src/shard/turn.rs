//! The loop of a shard, one turn after the other.
//!
//! Every step of a turn is bounded, so each source of work (peers, timers, tasks, the kernel) is looked at again after a
//! time that does not depend on how much the others have.

use std::task::Context;

use super::pace::POLLS_MAX;
use super::park::Rest;
use super::ration::Ration;
use super::{Inbound, Shard, ShardId};
use crate::mesh::record::{self, Arrival};
use crate::mesh::ring::Consumer;
use crate::observe::hooks::TaskMoment;
use crate::ring::{Effects, Wait};
use crate::task::{Pick, TaskRef, task_waker};

/// Time a turn gives to tasks.
pub(super) const TURN_NS: u64 = 200_000;
/// Polls of one turn, before timers, peers and the kernel are looked at again: twice as many as may pass between two
/// looks at the clock.
const POLLS_PER_TURN: u32 = 2 * POLLS_MAX;
/// Records taken from one peer in one turn.
const RECORDS_PER_TURN: usize = 1024;
/// A busy shard enters the kernel at least every so many turns, so that completions are not starved by ready tasks.
const TURNS_PER_ENTER: u32 = 8;

/// What a turn found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Work,
    Nothing,
}

impl Shard {
    /// The loop: turns until the runtime's tasks are to be dropped.
    pub(crate) fn run(&self, inbound: &mut Inbound, effects: &mut Effects) {
        let mut turns_since_enter = 0;
        let mut rest = Rest::Awake;
        loop {
            if let Some(pulse) = self.pulse() {
                pulse.beat();
            }
            let found = self.take_turn(inbound);
            self.account_for(rest, found);
            rest = Rest::Awake;
            // After the turn took the news: the notice that announces a stop is taken with the rest, and without it
            // nothing would refuse the shard its sleep.
            if !self.goes_on() {
                return;
            }
            if self.is_idle() {
                turns_since_enter = 0;
                rest = self.park(effects);
            } else {
                turns_since_enter += 1;
                if turns_since_enter >= TURNS_PER_ENTER || self.driver.borrow().needs_enter() {
                    turns_since_enter = 0;
                    self.enter(Wait::Poll, effects);
                }
            }
        }
    }

    /// Whether there is nothing to do that this shard knows of.
    pub(super) fn is_idle(&self) -> bool {
        let has_work = self.has_ready_tasks() || self.unfinished.get() || self.float.has_work();
        !has_work && !self.has_to_report_idleness()
    }

    /// Everything between two visits to the kernel.
    fn take_turn(&self, inbound: &mut Inbound) -> Found {
        // First: it may take long, and what the last turn wrote has left by now.
        let floats = self.float.has_work();
        self.run_float();
        let news = self.take_inbound(inbound);
        self.now_ns.set(self.clock.now_ns());
        let fired = self.fire_timers();
        let polls = self.run_tasks();
        // Before the publish: what a destructor sends leaves with this turn.
        self.bury_all();
        self.publish();
        if !floats && news == Found::Nothing && fired == 0 && polls == 0 {
            Found::Nothing
        } else {
            Found::Work
        }
    }

    /// Counts a turn, and the sleep before it.
    fn account_for(&self, rest: Rest, found: Found) {
        self.counters.turns.add(1);
        if rest == Rest::Slept && found == Found::Nothing {
            self.counters.empty_wakes.add(1);
        }
    }

    /// Takes what other threads sent: wakes, jobs, then the rings of the peers, each bounded.
    pub(super) fn take_inbound(&self, inbound: &mut Inbound) -> Found {
        if self.shared().handshake.has_news() {
            // What is looked at next lies on lines that another CPU has written, and they may all come at the same time.
            inbound.iter().flatten().for_each(Consumer::expect);
        }
        let news = self.shared().handshake.take_pending();
        if !news && !self.unfinished.get() {
            return Found::Nothing;
        }
        self.arrivals.renew();
        {
            let mut tasks = self.tasks.borrow_mut();
            self.shared().wakes.drain(|slot| tasks.wake_slot(slot));
        }
        let mut more = self.run_jobs();
        for (from, consumer) in (0_u16..).map(ShardId::from).zip(inbound.iter_mut()) {
            more |= self.take_from(from, consumer);
        }
        self.unfinished.set(more);
        Found::Work
    }

    /// Runs what other threads gave to this shard, in their order and within one ration; true if some is left.
    fn run_jobs(&self) -> bool {
        if self.jobs_begun.borrow().is_empty() {
            *self.jobs_begun.borrow_mut() = self.shared().jobs.take_all();
        }
        let ration = Ration::default();
        while ration.take(|| self.clock.now_ns()) {
            let job = self.jobs_begun.borrow_mut().next();
            let Some(job) = job else { break };
            self.counters.jobs.add(1);
            self.contain(job);
        }
        // Also what came while these were run: the news of it may have been taken with theirs.
        !self.jobs_begun.borrow().is_empty() || !self.shared().jobs.is_empty()
    }

    /// Takes records of one peer; true if some were left.
    fn take_from(&self, from: ShardId, consumer: &mut Option<Consumer>) -> bool {
        if consumer.is_none() {
            *consumer = self
                .team
                .ring(from, self.id)
                .map(|ring| Consumer::new(ring.clone()));
        }
        let Some(consumer) = consumer else {
            return false;
        };
        let arrival = Arrival { shard: self, from };
        let drained = record::drain(consumer, RECORDS_PER_TURN, &arrival);
        if drained.count > 0 {
            self.heard_from.set(Some(from));
        }
        if drained.sender_wants_room {
            self.team.shared(from).notify();
        }
        drained.count == RECORDS_PER_TURN
    }

    /// Takes one of the turn's places for work that is done where a message arrives, without a task.
    #[inline]
    pub(crate) fn may_work_on_arrival(&self) -> bool {
        self.arrivals.take(|| self.clock.now_ns())
    }

    /// Wakes those whose time has come; returns how many.
    fn fire_timers(&self) -> u64 {
        let now_ns = self.now_ns.get();
        let mut fired = 0;
        loop {
            let waker = self.timers.borrow_mut().pop_due(now_ns);
            let Some(waker) = waker else { break };
            fired += 1;
            // A waker may be anybody's.
            self.contain(|| waker.wake());
        }
        self.counters.timers_fired.add(fired);
        fired
    }

    /// Polls ready tasks, those that become ready meanwhile included, until none is left or the turn has had its share.
    /// Returns how many polls it were.
    fn run_tasks(&self) -> u32 {
        let end_ns = self.now_ns.get() + TURN_NS;
        let mut polls = 0;
        let mut looked_at = 0;
        self.pace.begin(self.now_ns.get());
        while polls < POLLS_PER_TURN {
            let popped = self.tasks.borrow_mut().pop_ready(self.budget.for_chain());
            let Some((task, pick)) = popped else { break };
            if pick != Pick::Chained {
                self.budget.refill();
            }
            let rival = match pick {
                Pick::Among(class) => Some((class, self.clock.now_ns())),
                Pick::Queued | Pick::Chained => None,
            };
            self.run_task(task);
            polls += 1;
            if rival.is_some() || polls - looked_at == self.pace.polls_ahead() {
                let now_ns = self.clock.now_ns();
                if let Some((class, start_ns)) = rival {
                    let elapsed_ns = now_ns.saturating_sub(start_ns);
                    self.tasks.borrow_mut().charge(class, elapsed_ns);
                }
                self.pace.look(polls - looked_at, now_ns);
                looked_at = polls;
                if now_ns > end_ns {
                    break;
                }
            }
        }
        self.tasks.borrow_mut().end_chain();
        self.pace.leave(polls - looked_at);
        self.counters.polls.add(u64::from(polls));
        self.budget.lift();
        // Tasks that yielded are ready again, but not before timers, peers and the kernel had their turn.
        let mut yielded = std::mem::take(&mut *self.yielded.borrow_mut());
        for waker in yielded.drain(..) {
            self.contain(|| waker.wake());
        }
        let mut unused = self.yielded.borrow_mut();
        if unused.is_empty() {
            *unused = yielded;
        }
        polls
    }

    #[inline]
    fn run_task(&self, mut task: TaskRef) {
        let waker = task_waker(task.id());
        self.hook_task(TaskMoment::BeforePoll, |shard| task.info(shard));
        self.running.set(Some(task.unique_id()));
        if let Some(pulse) = self.pulse() {
            pulse.enter(task.id());
        }
        let span = task.take_span();
        self.traced.enter(&span);
        let ended = task.poll(&mut Context::from_waker(&waker));
        self.traced.exit(&span);
        task.put_span(span);
        self.running.set(None);
        if let Some(pulse) = self.pulse() {
            pulse.beat();
        }
        self.hook_task(TaskMoment::AfterPoll, |shard| task.info(shard));
        if ended {
            return self.end(task);
        }
        let aborted = self.tasks.borrow_mut().give_back(task);
        if let Some(task) = aborted {
            self.cancel(task);
        }
    }

    /// Makes everything this turn wrote visible to its peers, with one notice each.
    pub(crate) fn publish(&self) {
        if self.touched.borrow().is_empty() {
            return;
        }
        let peers = std::mem::take(&mut *self.touched.borrow_mut());
        for &peer in &peers {
            if self.publish_link(peer) {
                // Stays in the list, and is not woken for nothing: the reader says when there is room.
                self.touch(peer);
            }
        }
        // The vector's memory is kept for the next turn.
        let mut touched = self.touched.borrow_mut();
        let again = std::mem::replace(&mut *touched, peers);
        touched.clear();
        touched.extend(again);
    }

    /// Drops evicted residents; their drops may evict more.
    pub(super) fn bury_all(&self) {
        if self.graveyard.borrow().is_empty() {
            return;
        }
        loop {
            let Some(body) = self.graveyard.borrow_mut().pop() else {
                return;
            };
            self.contain(|| drop(body));
        }
    }
}
