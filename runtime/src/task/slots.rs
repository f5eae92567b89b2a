//! The table of a shard's tasks and its run queue.
//!
//! The queue holds slots with their generations. A task that ends while it is queued leaves its entry behind, which is
//! skipped when its turn comes: the next task of the slot takes a place of its own, so tasks start in the order in which
//! they were spawned.

use super::id::{Id, SLOT_COUNT_MAX};
use super::origin::FirstPoll;
use super::raw::TaskRef;
use super::ready::{ChainBudget, Class, Pick, ReadyQueue};

#[derive(Debug)]
struct Slot {
    generation: u32,
    queued: bool,
    class: Class,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Next free slot, or `SLOT_COUNT_MAX` at the end of the list.
    Free(u32),
    Task(TaskRef),
    /// Taken out by the loop for the time of its poll or drop.
    Lent {
        /// Of the task's [`Id`].
        epoch: u32,
        /// The task is to be cancelled when its poll returns.
        aborted: bool,
    },
}

/// Every task of one shard, and which of them are ready.
#[derive(Debug)]
pub(crate) struct Tasks {
    slots: Vec<Slot>,
    free: u32,
    len: usize,
    ready: ReadyQueue,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: SLOT_COUNT_MAX,
            len: 0,
            ready: ReadyQueue::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The tasks that are not lent, and whether each is ready.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&TaskRef, bool)> {
        self.slots.iter().filter_map(|slot| match &slot.content {
            Content::Task(task) => Some((task, slot.queued)),
            Content::Free(_) | Content::Lent { .. } => None,
        })
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// For a shard on which no task is to go before those that are ready.
    pub(crate) fn forgo_slot(&mut self) {
        self.ready.forgo_slot();
    }

    /// Chains that got as long as they may.
    pub(crate) fn chains_capped(&self) -> u64 {
        self.ready.capped()
    }

    /// The turn runs no more tasks.
    pub(crate) fn end_chain(&mut self) {
        self.ready.end_chain();
    }

    /// Subtracts what a task that was picked among others took.
    pub(crate) fn charge(&mut self, class: Class, elapsed_ns: u64) {
        self.ready.charge(class, elapsed_ns);
    }

    /// The slot that the next [`Tasks::insert`] will use, or `None` when the table is full.
    pub(crate) fn next_slot(&self) -> Option<u32> {
        if self.free != SLOT_COUNT_MAX {
            return Some(self.free);
        }
        u32::try_from(self.slots.len())
            .ok()
            .filter(|&slot| slot < SLOT_COUNT_MAX)
    }

    /// Puts a task, whose id names [`Tasks::next_slot`], into the table, and queues it if it is to be polled soon.
    pub(crate) fn insert(&mut self, task: TaskRef, class: Class, first: FirstPoll) {
        let (slot, generation) = (task.id().slot(), task.id().generation());
        let index = slot as usize;
        let is_awake = first == FirstPoll::Soon;
        if index == self.slots.len() {
            self.slots.push(Slot {
                generation,
                queued: is_awake,
                class,
                content: Content::Task(task),
            });
        } else {
            let entry = &mut self.slots[index];
            let Content::Free(next) = entry.content else {
                unreachable!("slot {slot} was not free")
            };
            self.free = next;
            entry.generation = generation;
            entry.queued = is_awake;
            entry.class = class;
            entry.content = Content::Task(task);
        }
        self.len += 1;
        if is_awake {
            self.ready.push((slot, generation), class);
        }
    }

    /// Queues the task unless it is queued already or the id is stale.
    pub(crate) fn wake(&mut self, slot: u32, generation: u32) {
        let index = slot as usize;
        if self
            .slots
            .get(index)
            .is_some_and(|entry| entry.generation == generation)
        {
            self.queue(index);
        }
    }

    /// Queues whatever task is in the slot.
    pub(crate) fn wake_slot(&mut self, slot: u32) {
        if (slot as usize) < self.slots.len() {
            self.queue(slot as usize);
        }
    }

    #[inline]
    fn queue(&mut self, index: usize) {
        let entry = &mut self.slots[index];
        if !entry.queued {
            entry.queued = true;
            let slot = u32::try_from(index).expect("slots fit in 22 bits");
            let ready = (slot, entry.generation);
            match entry.content {
                // One that wakes itself lets all others go first.
                Content::Lent { .. } => self.ready.push(ready, entry.class),
                Content::Task(_) | Content::Free(_) => self.ready.push_woken(ready, entry.class),
            }
        }
    }

    /// Takes the next ready task out for a poll. The `queued` bit is cleared *before* the poll, so a wake that comes
    /// while it runs queues it again.
    pub(crate) fn pop_ready(&mut self, budget: ChainBudget) -> Option<(TaskRef, Pick)> {
        loop {
            let ((slot, generation), pick) = self.ready.pop(budget)?;
            let entry = &mut self.slots[slot as usize];
            if entry.generation != generation {
                continue;
            }
            entry.queued = false;
            if matches!(entry.content, Content::Task(_)) {
                return self.lend(slot).map(|task| (task, pick));
            }
        }
    }

    /// Takes a task out of its slot; [`Tasks::give_back`] or [`Tasks::remove`] must follow.
    pub(crate) fn lend(&mut self, slot: u32) -> Option<TaskRef> {
        let content = &mut self.slots.get_mut(slot as usize)?.content;
        let Content::Task(task) = content else {
            return None;
        };
        let lent = Content::Lent {
            epoch: task.unique_id().epoch(),
            aborted: false,
        };
        match std::mem::replace(content, lent) {
            Content::Task(task) => Some(task),
            Content::Free(_) | Content::Lent { .. } => None,
        }
    }

    /// Puts a lent task back, or returns it, still lent, if it was aborted meanwhile.
    #[must_use = "an aborted task is to be cancelled"]
    pub(crate) fn give_back(&mut self, task: TaskRef) -> Option<TaskRef> {
        let content = &mut self.slots[task.id().slot() as usize].content;
        let Content::Lent { aborted, .. } = *content else {
            unreachable!("slot {} was not lent", task.id().slot())
        };
        if aborted {
            return Some(task);
        }
        *content = Content::Task(task);
        None
    }

    /// Takes a task out to be cancelled, as [`Tasks::lend`] does. One that is lent is marked instead: it comes back from
    /// [`Tasks::give_back`]. Of a task that has ended there is nothing.
    pub(crate) fn abort(&mut self, id: Id) -> Option<TaskRef> {
        let slot = id.task().slot();
        let entry = self.slots.get_mut(slot as usize)?;
        if entry.generation != id.task().generation() {
            return None;
        }
        match &mut entry.content {
            Content::Task(task) if task.unique_id() == id => self.lend(slot),
            Content::Lent { epoch, aborted } if *epoch == id.epoch() => {
                *aborted = true;
                None
            }
            Content::Task(_) | Content::Lent { .. } | Content::Free(_) => None,
        }
    }

    /// Frees the slot of a lent task that has ended.
    pub(crate) fn remove(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        debug_assert!(
            matches!(entry.content, Content::Lent { .. }),
            "slot {slot} was not lent"
        );
        // A stale wake must not match: zero is never handed out.
        entry.generation = 0;
        entry.content = Content::Free(self.free);
        self.free = slot;
        self.len -= 1;
    }

    /// How many slots there are, in use or not.
    pub(crate) fn slot_count(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("slots fit in 22 bits")
    }
}
