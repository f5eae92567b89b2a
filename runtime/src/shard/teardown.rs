//! The end of a shard.
//!
//! 1. *Cancel*: no new tasks; every future is dropped, one by one, each drop contained. Then residents and extensions.
//! 2. *Drain*: every operation is cancelled and its completion awaited, for a limited time. What the kernel still
//!    holds then is leaked and reported, never freed.
//! 3. *Wait for the peers*: a shard that is quiet goes on emptying its rings until all are quiet, so that nobody's last
//!    records meet a thread that is gone.
//! 4. *Close*: the injector is closed (later jobs go back to their senders), the doorbell waits for rings that were
//!    claimed, and the number may be used again.

use std::time::Duration;

use super::{Inbound, Shard};
use crate::clock::nanos;
use crate::inject::queue::Drain;
use crate::ring::{Effects, Wait};
use crate::shutdown::{Phase, ShardReport};
use crate::sys;

/// The longest wait of the drain between two looks at the clock.
const DRAIN_STEP: Duration = Duration::from_millis(20);
/// The longest wait for peers between two looks; what they do is announced at the doorbell.
const PEERS_STEP_MS: i32 = 1000;
/// How long a ring that was claimed may take to arrive before its descriptor is leaked instead of closed.
const DOORBELL_TIMEOUT_MS: i32 = 1000;

impl Shard {
    /// Ends a shard that ran.
    pub(crate) fn tear_down(&self, inbound: &mut Inbound, effects: &mut Effects) {
        self.team.enter(self.id, Phase::Cancelling);
        self.closing.set(true);
        self.cancel_everything();
        self.team.enter(self.id, Phase::Quiescing);
        self.drain_driver(effects);
        self.team.enter(self.id, Phase::Waiting);
        self.wait_for_peers(inbound);
        self.close();
    }

    /// Ends a shard that never ran, because another one of its team could not start.
    pub(crate) fn abandon(&self, effects: &mut Effects) {
        self.closing.set(true);
        self.drain_driver(effects);
        self.close();
    }

    fn cancel_everything(&self) {
        let dropped = self.tasks.borrow().len();
        let note = |report: &mut ShardReport| report.note_dropped_tasks(dropped);
        self.team.stop().report(self.id, note);
        // No task can be added any more, so one pass meets them all.
        let slots = self.tasks.borrow().slot_count();
        for slot in 0..slots {
            self.cancel_slot(slot);
        }
        self.drop_float();
        let residents = self.residents.borrow_mut().drain();
        for resident in residents {
            self.contain(|| drop(resident));
        }
        self.bury_all();
        let extensions = std::mem::take(&mut *self.extensions.borrow_mut());
        for extension in extensions {
            self.contain(|| drop(extension));
        }
        self.publish();
    }

    fn drain_driver(&self, effects: &mut Effects) {
        self.driver.borrow_mut().begin_teardown();
        let limit_ns = nanos(self.team.stop().limit());
        let deadline_ns = self.clock.now_ns().saturating_add(limit_ns);
        while self.driver.borrow().live_ops() > 0 && self.clock.now_ns() < deadline_ns {
            self.enter(Wait::Until(Some(DRAIN_STEP)), effects);
        }
        let leaked = self.driver.borrow_mut().leak_remaining();
        let note = |report: &mut ShardReport| report.note_leaks(leaked.operations);
        self.team.stop().report(self.id, note);
    }

    fn wait_for_peers(&self, inbound: &mut Inbound) {
        loop {
            self.take_inbound(inbound);
            self.bury_all();
            self.publish();
            if self.unfinished.get() {
                continue;
            }
            if self.team.stop().is_all_quiet() {
                return;
            }
            // The driver holds no operation any more, not even the doorbell's read: wait on the doorbell itself.
            if self.shared().handshake.prepare_sleep() {
                let rung = sys::await_ring(self.doorbell(), PEERS_STEP_MS);
                self.count_rings(rung.unwrap_or(0));
                self.finish_sleep();
            }
        }
    }

    fn close(&self) {
        self.shared().handshake.close();
        let mut refused = 0;
        let begun = self.jobs_begun.replace(Drain::empty());
        for job in begun.chain(self.shared().jobs.close()) {
            // A job that came too late is dropped, not run: what it carries tells its sender.
            self.contain(|| drop(job));
            refused += 1;
        }
        let note = |report: &mut ShardReport| report.note_refused_jobs(refused);
        self.team.stop().report(self.id, note);
        self.shared().keep_generation(self.generation.get());
        self.count_rings(self.driver.borrow().doorbell_count());
        while self.rings_received.get() < self.rings_owed.get() {
            match sys::await_ring(self.doorbell(), DOORBELL_TIMEOUT_MS) {
                Some(count) => self.count_rings(count),
                None => return self.leak_doorbell(),
            }
        }
    }

    fn count_rings(&self, count: u64) {
        self.rings_received.set(self.rings_received.get() + count);
    }

    /// Somebody claimed the bell a second ago and has not rung it: the descriptor is kept for ever rather than let a
    /// late write hit whoever gets its number next.
    fn leak_doorbell(&self) {
        self.doorbell_leaked.set(true);
    }
}
