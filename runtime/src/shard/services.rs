//! What the rest of the runtime asks of the current shard.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::registry::SharedShard;
use super::{Shard, ShardId, ShardNumber};
use crate::clock::nanos;
use crate::float::lane::Lane;
use crate::mesh::at_once::Frames;
use crate::mesh::link::Link;
use crate::mesh::reply::Replies;
use crate::mesh::resident::Residents;
use crate::mesh::ring::Producer;
use crate::mesh::team::Team;
use crate::observe::hooks::{Hooks, TaskMoment};
use crate::observe::pulse::Pulse;
use crate::ring::Driver;
use crate::rng::Rng;
use crate::task::coop::Budget;
use crate::task::{Cleared, Id, Info, JoinHandle, Origin, TaskRef, new_task, task_waker};
use crate::time::{Alarm, Timers};

/// A limit that a long turn is small against.
const LONG_LIMIT: Duration = Duration::from_secs(5);

/// How a task stands with its shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// It is queued to be polled.
    pub(crate) ready: bool,
    /// When it was spawned, by the shard's clock.
    pub(crate) born_ns: u64,
}

/// What the rest of the runtime asks of the current shard.
impl Shard {
    #[inline]
    pub(crate) fn id(&self) -> ShardId {
        self.id
    }

    #[inline]
    pub(crate) fn number(&self) -> ShardNumber {
        self.lease.number()
    }

    #[inline]
    pub(crate) fn team(&self) -> &Arc<Team> {
        &self.team
    }

    #[inline]
    pub(crate) fn shared(&self) -> &'static SharedShard {
        self.lease.shared()
    }

    pub(super) fn doorbell(&self) -> &OwnedFd {
        self.doorbell.as_ref().expect("taken out by drop alone")
    }

    #[inline]
    pub(crate) fn hooks(&self) -> Option<&Hooks> {
        self.hooks.as_deref()
    }

    /// What the shard shows while it is busy, if anyone watches.
    #[inline]
    pub(crate) fn pulse(&self) -> Option<&Pulse> {
        self.pulse.as_deref()
    }

    /// Tells of each task that is not running.
    pub(crate) fn each_task(&self, mut tell: impl FnMut(Info<'_>, Standing)) {
        for (task, ready) in self.tasks.borrow().each() {
            let standing = Standing {
                ready,
                born_ns: task.born_ns(),
            };
            tell(task.info(self.id), standing);
        }
    }

    pub(crate) fn float(&self) -> &Lane {
        &self.float
    }

    /// Whether new tasks are refused.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    pub(crate) fn has_ready_tasks(&self) -> bool {
        self.tasks.borrow().has_ready()
    }

    pub(crate) fn driver(&self) -> &RefCell<Driver> {
        &self.driver
    }

    pub(crate) fn timers(&self) -> &RefCell<Timers> {
        &self.timers
    }

    #[inline]
    pub(crate) fn residents(&self) -> &RefCell<Residents> {
        &self.residents
    }

    #[inline]
    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    pub(crate) fn replies(&self) -> &RefCell<Replies> {
        &self.replies
    }

    pub(crate) fn reply_alarm(&self) -> &Alarm {
        &self.reply_alarm
    }

    pub(crate) fn reply_limit(&self) -> Option<Duration> {
        self.reply_limit
    }

    /// When an answer that is asked for now is due where nothing else is said.
    ///
    /// Counted from the turn's look at the clock if the limit is so long that it does not matter.
    #[inline]
    pub(crate) fn usual_due_ns(&self) -> Option<u64> {
        let limit = self.reply_limit?;
        let from_ns = if limit < LONG_LIMIT {
            self.now_ns()
        } else {
            self.turn_ns()
        };
        Some(from_ns.saturating_add(nanos(limit)))
    }

    /// The clock as this turn has read it.
    #[inline]
    pub(crate) fn turn_ns(&self) -> u64 {
        self.now_ns.get()
    }

    #[inline]
    pub(crate) fn link(&self, peer: ShardId) -> &RefCell<Link> {
        &self.links[peer.index()]
    }

    pub(crate) fn rng(&self) -> &Rng {
        &self.rng
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    pub(crate) fn backend_name(&self) -> &'static str {
        self.driver.borrow().backend_name()
    }

    /// The next number of the shard's count of generations, never zero.
    #[inline]
    pub(crate) fn next_generation(&self) -> u64 {
        self.generation.replace(self.generation.get() + 1)
    }

    /// Whether a generation was given out by an earlier shard of this number.
    pub(crate) fn is_inherited(&self, generation: u64) -> bool {
        generation < self.first_generation
    }

    pub(crate) fn touch(&self, peer: ShardId) {
        self.touched.borrow_mut().push(peer);
    }

    /// Something was sent to a peer.
    pub(crate) fn note_told(&self, peer: ShardId) {
        self.told.set(Some(peer));
    }

    pub(crate) fn make_producer(&self, peer: ShardId) -> Producer {
        Producer::new(self.team.ring_or_make(self.id, peer).clone())
    }

    pub(crate) fn bury(&self, body: Rc<dyn Any>) {
        self.graveyard.borrow_mut().push(body);
    }

    pub(crate) fn count_stray_panic(&self) {
        self.counters.stray_panics.add(1);
    }

    /// Wakes the task at the end of the turn.
    pub(crate) fn wake_later(&self, waker: &Waker) {
        let is_known = |yielded: &[Waker]| yielded.last().is_some_and(|last| last.will_wake(waker));
        // Of many futures in one task each may ask.
        if !is_known(&self.yielded.borrow()) {
            // Cloned before the borrow: a waker may be anyone's code.
            let waker = waker.clone();
            self.yielded.borrow_mut().push(waker);
        }
    }

    /// What the running task may still do.
    #[inline]
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The running task has spent its budget: it goes on when the turn has ended.
    ///
    /// A waker that is not its own belongs to something in it that polls several futures. It is woken now, so that it can see
    /// that the one it polls wants to be polled again, and stop: it would ask all others in vain. The wake of the task that
    /// follows from it is put off in [`Shard::wake_local`].
    #[cold]
    pub(crate) fn give_way(&self, waker: &Waker) {
        self.counters.budget_yields.add(1);
        let running = self.running.get();
        if running.is_some_and(|id| !task_waker(id.task()).will_wake(waker)) {
            waker.wake_by_ref();
        } else {
            self.wake_later(waker);
        }
    }

    #[inline]
    pub(crate) fn wake_local(&self, slot: u32, generation: u32) {
        if self.budget.is_spent() && self.put_off(slot, generation) {
            return;
        }
        self.tasks.borrow_mut().wake(slot, generation);
    }

    /// A task that wakes itself when its budget is spent is woken at the end of the turn.
    #[cold]
    fn put_off(&self, slot: u32, generation: u32) -> bool {
        let running = self.running.get().map(Id::task);
        let own = running.filter(|id| (id.slot(), id.generation()) == (slot, generation));
        if let Some(id) = own {
            self.wake_later(&task_waker(id));
        }
        own.is_some()
    }

    pub(crate) fn spawn<F>(&self, origin: Origin, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let slot = self
            .tasks
            .borrow()
            .next_slot()
            .expect("a shard holds at most 4 194 304 tasks");
        let id = loop {
            let id = Id::new(self.number(), slot, self.next_generation());
            // Zero marks free slots.
            if id.task().generation() != 0 {
                break id;
            }
        };
        let Origin {
            class, first_poll, ..
        } = origin;
        let (mut listed, handle) = new_task(id, origin, self.now_ns.get(), future);
        let handle = JoinHandle::new(handle);
        if self.closing.get() {
            self.drop_future(&mut listed);
            self.unlist(listed);
            return handle;
        }
        self.shared().wakes.ensure(slot);
        let generation = id.task().generation();
        self.shared().wakes.set_generation(slot, generation);
        self.tasks.borrow_mut().insert(listed, class, first_poll);
        if let Some(pulse) = self.pulse() {
            pulse.note_spawn(&handle.info(self.id));
        }
        handle.put_span(self.traced.open(&handle.info(self.id)));
        self.hook_task(TaskMoment::Spawn, |shard| handle.info(shard));
        handle
    }

    /// Cancels a task of this shard: now, or when its poll returns if it runs. One that has ended is left alone.
    pub(crate) fn abort_task(&self, id: Id) {
        let aborted = self.tasks.borrow_mut().abort(id);
        if let Some(task) = aborted {
            self.cancel(task);
        }
    }

    /// Cancels whatever task is in the slot, unless it is running.
    pub(super) fn cancel_slot(&self, slot: u32) {
        let task = self.tasks.borrow_mut().lend(slot);
        if let Some(task) = task {
            self.cancel(task);
        }
    }

    pub(super) fn drop_future(&self, task: &mut TaskRef) {
        let outer = self.running.replace(Some(task.unique_id()));
        if task.clear() == Cleared::Panicked {
            self.count_stray_panic();
        }
        self.running.set(outer);
    }

    /// Takes a lent task, whose future is gone, off the table.
    pub(super) fn end(&self, task: TaskRef) {
        self.tasks.borrow_mut().remove(task.id().slot());
        self.hook_task(TaskMoment::Terminate, |shard| task.info(shard));
        task.take_span().close();
        self.unlist(task);
    }

    fn unlist(&self, task: TaskRef) {
        if let Some(joiner) = task.unlist() {
            // A waker may be anybody's.
            self.contain(|| joiner.wake());
        }
    }

    /// The task whose code runs.
    pub(crate) fn running_task(&self) -> Option<Id> {
        self.running.get()
    }

    pub(crate) fn extension<T: 'static>(&self, make: impl FnOnce() -> T) -> Rc<T> {
        let find = |extensions: &[(TypeId, Rc<dyn Any>)]| {
            let (_, found) = extensions
                .iter()
                .find(|(known, _)| *known == TypeId::of::<T>())?;
            found.clone().downcast::<T>().ok()
        };
        if let Some(found) = find(&self.extensions.borrow()) {
            return found;
        }
        let made = Rc::new(make());
        self.extensions
            .borrow_mut()
            .push((TypeId::of::<T>(), made.clone()));
        made
    }
}
