//! What the rest of the runtime asks of the current shard.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use super::registry::SharedShard;
use super::{Shard, ShardId, ShardNumber};
use crate::mesh::link::Link;
use crate::mesh::reply::Replies;
use crate::mesh::resident::Residents;
use crate::mesh::ring::Producer;
use crate::mesh::team::Team;
use crate::ring::Driver;
use crate::rng::Rng;
use crate::task::coop::Budget;
use crate::task::{Cleared, JoinHandle, TaskId, new_task};
use crate::time::Timers;

/// What the rest of the runtime asks of the current shard.
impl Shard {
    pub(crate) fn id(&self) -> ShardId {
        self.id
    }

    #[inline]
    pub(crate) fn number(&self) -> ShardNumber {
        self.lease.number()
    }

    pub(crate) fn team(&self) -> &Arc<Team> {
        &self.team
    }

    pub(crate) fn shared(&self) -> &'static SharedShard {
        self.lease.shared()
    }

    pub(super) fn doorbell(&self) -> &OwnedFd {
        self.doorbell.as_ref().expect("taken out by drop alone")
    }

    pub(crate) fn driver(&self) -> &RefCell<Driver> {
        &self.driver
    }

    pub(crate) fn timers(&self) -> &RefCell<Timers> {
        &self.timers
    }

    pub(crate) fn residents(&self) -> &RefCell<Residents> {
        &self.residents
    }

    pub(crate) fn replies(&self) -> &RefCell<Replies> {
        &self.replies
    }

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

    pub(crate) fn make_producer(&self, peer: ShardId) -> Producer {
        Producer::new(self.team.ring_or_make(self.id, peer).clone())
    }

    pub(crate) fn bury(&self, body: Rc<dyn Any>) {
        self.graveyard.borrow_mut().push(body);
    }

    pub(crate) fn count_stray_panic(&self) {
        self.stray_panics.set(self.stray_panics.get() + 1);
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
    #[cold]
    pub(crate) fn give_way(&self, waker: &Waker) {
        self.wake_later(waker);
    }

    #[inline]
    pub(crate) fn wake_local(&self, slot: u32, generation: u32) {
        self.tasks.borrow_mut().wake(slot, generation);
    }

    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let slot = self
            .tasks
            .borrow()
            .next_slot()
            .expect("a shard holds at most 4 194 304 tasks");
        // The lower half is the task's generation; zero marks free slots.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower half is what is wanted"
        )]
        let generation = loop {
            let generation = self.next_generation() as u32;
            if generation != 0 {
                break generation;
            }
        };
        let id = TaskId::new(self.number(), slot, generation);
        let (listed, handle) = new_task(id, future);
        let handle = JoinHandle::new(handle);
        if self.closing.get() {
            self.count_if_panicked(listed.clear());
            listed.unlist();
            return handle;
        }
        self.shared().wakes.ensure(slot);
        self.shared().wakes.set_generation(slot, generation);
        self.tasks.borrow_mut().insert(listed);
        handle
    }

    /// Drops the future of a task that is not running.
    pub(crate) fn cancel_task(&self, id: TaskId) {
        if self.tasks.borrow().has(id.slot(), id.generation()) {
            self.cancel_slot(id.slot());
        }
    }

    /// Drops the future of whatever task is in the slot, unless it is running.
    pub(super) fn cancel_slot(&self, slot: u32) {
        let Some(task) = self.tasks.borrow_mut().lend(slot) else {
            return;
        };
        self.count_if_panicked(task.clear());
        self.tasks.borrow_mut().remove(slot);
        task.unlist();
    }

    fn count_if_panicked(&self, cleared: Cleared) {
        if cleared == Cleared::Panicked {
            self.count_stray_panic();
        }
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
