//! The loop of a shard, one turn after the other.
//!
//! Every step of a turn is bounded, so each source of work (peers, timers, tasks, the kernel) is looked at again after a
//! time that does not depend on how much the others have.

use std::task::Context;

use super::{Inbound, Shard, ShardId};
use crate::mesh::record::{self, Arrival};
use crate::mesh::ring::Consumer;
use crate::observe::hooks::TaskMoment;
use crate::ring::{Effects, Wait};
use crate::task::{TaskRef, task_waker};

/// Time a turn gives to tasks.
const TURN_NS: u64 = 200_000;
/// Polls between two looks at the clock.
const POLLS_PER_CLOCK: usize = 32;
/// Tasks run in one turn before timers, peers and the kernel are looked at again.
const TASKS_PER_TURN: usize = 256;
/// Records taken from one peer in one turn.
const RECORDS_PER_TURN: usize = 1024;
/// A busy shard enters the kernel at least every so many turns, so that completions are not starved by ready tasks.
const TURNS_PER_ENTER: u32 = 8;

impl Shard {
    /// The loop: turns until the team is asked to stop.
    pub(crate) fn run(&self, inbound: &mut Inbound, effects: &mut Effects) {
        let mut turns_since_enter = 0;
        while !self.team.is_stopping() {
            // First: it may take long, and what the last turn wrote has left by now.
            self.run_float();
            self.now_ns.set(self.clock.now_ns());
            self.take_inbound(inbound);
            self.fire_timers();
            self.run_tasks();
            // Before the publish: what a destructor sends leaves with this turn.
            self.bury_all();
            self.publish();
            if self.is_idle() {
                turns_since_enter = 0;
                self.park(effects);
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
        !self.has_ready_tasks() && !self.unfinished.get() && !self.float.has_work()
    }

    /// Takes what other threads sent: wakes, jobs, then the rings of the peers, each bounded.
    pub(super) fn take_inbound(&self, inbound: &mut Inbound) {
        let news = self.shared().handshake.take_pending();
        if !news && !self.unfinished.get() {
            return;
        }
        {
            let mut tasks = self.tasks.borrow_mut();
            self.shared().wakes.drain(|slot| tasks.wake_slot(slot));
        }
        for job in self.shared().jobs.take_all() {
            self.contain(job);
        }
        let mut more = false;
        for (from, consumer) in (0_u16..).map(ShardId::from).zip(inbound.iter_mut()) {
            more |= self.take_from(from, consumer);
        }
        self.unfinished.set(more);
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
        if drained.sender_wants_room {
            self.team.shared(from).notify();
        }
        drained.count == RECORDS_PER_TURN
    }

    fn fire_timers(&self) {
        let now_ns = self.now_ns.get();
        loop {
            let waker = self.timers.borrow_mut().pop_due(now_ns);
            let Some(waker) = waker else { return };
            // A waker may be anybody's.
            self.contain(|| waker.wake());
        }
    }

    /// Polls ready tasks, those that become ready meanwhile included, until none is left or the turn has had its share.
    fn run_tasks(&self) {
        for polled in 1..=TASKS_PER_TURN {
            let Some(task) = self.tasks.borrow_mut().pop_ready() else {
                break;
            };
            self.run_task(task);
            if polled % POLLS_PER_CLOCK == 0 && self.clock.now_ns() - self.now_ns.get() > TURN_NS {
                break;
            }
        }
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
    }

    fn run_task(&self, mut task: TaskRef) {
        let waker = task_waker(task.id());
        self.hook_task(TaskMoment::BeforePoll, |shard| task.info(shard));
        self.budget.refill();
        self.running.set(Some(task.unique_id()));
        let ended = task.poll(&mut Context::from_waker(&waker));
        self.running.set(None);
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
    pub(super) fn publish(&self) {
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
