//! What a shard shows while it is busy, for those who may not wait until it answers.
//!
//! There only if the watchdog was asked for. The shard counts a beat at each turn and at each poll, and says which task it
//! polls; both are plain stores to a line of its own. Everything longer is told once for each task, at its spawn.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::task::{Id, Info, TaskId};

/// No task is polled. Not an id: the generations of tasks are not zero.
const NO_TASK: u64 = 0;

/// The pulse of one shard. Written by it, read by anyone.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Pulse {
    /// Changes at each turn and each poll.
    beat: AtomicU64,
    /// The bits of the id of the task that is polled.
    task: AtomicU64,
    /// The kernel's number of the shard's thread; zero until it runs.
    thread: AtomicI32,
    /// What was said of the tasks at their spawn, by slot. An entry stays until its slot is used again.
    spawned: Mutex<Vec<Option<RunningTask>>>,
}

/// A task that its shard is in the middle of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunningTask {
    /// Its id.
    pub id: Id,
    /// The name it was given.
    pub name: Option<String>,
    /// The call that spawned it.
    pub spawned_at: &'static Location<'static>,
}

impl Pulse {
    /// A turn begins, or something that is no task. For the shard.
    pub(crate) fn beat(&self) {
        self.show(NO_TASK);
    }

    /// A task is about to be polled. For the shard.
    pub(crate) fn enter(&self, task: TaskId) {
        self.show(task.bits());
    }

    fn show(&self, task: u64) {
        // ORDERING: Relaxed, as only the shard writes it.
        let beat = self.beat.load(Ordering::Relaxed);
        // ORDERING: Relaxed on both. Watchers compare beats that are many turns apart, and what they make of them is a
        // line of text; a store that becomes visible late only makes the watcher look once more.
        self.task.store(task, Ordering::Relaxed);
        self.beat.store(beat.wrapping_add(1), Ordering::Relaxed);
    }

    /// Says all there is to say of a task. For the shard, at the spawn.
    pub(crate) fn note_spawn(&self, info: &Info<'_>) {
        let slot = info.id.task().slot() as usize;
        let mut spawned = self.spawned.lock().unwrap_or_else(PoisonError::into_inner);
        if spawned.len() <= slot {
            spawned.resize(slot + 1, None);
        }
        spawned[slot] = Some(RunningTask {
            id: info.id,
            name: info.name.map(str::to_owned),
            spawned_at: info.spawned_at,
        });
    }

    pub(crate) fn set_thread(&self, thread: i32) {
        // ORDERING: Relaxed; a number to print.
        self.thread.store(thread, Ordering::Relaxed);
    }

    pub(super) fn thread(&self) -> i32 {
        // ORDERING: Relaxed; see `set_thread`.
        self.thread.load(Ordering::Relaxed)
    }

    /// A number that does not change while the shard is in one poll, or in one thing between polls.
    pub(super) fn current(&self) -> u64 {
        // ORDERING: Relaxed; see `show`.
        self.beat.load(Ordering::Relaxed)
    }

    /// The task that is polled right now, if any.
    pub(super) fn running(&self) -> Option<RunningTask> {
        // ORDERING: Relaxed; see `show`.
        let bits = self.task.load(Ordering::Relaxed);
        if bits == NO_TASK {
            return None;
        }
        let task = TaskId::from_bits(bits);
        let spawned = self.spawned.lock().unwrap_or_else(PoisonError::into_inner);
        let known = spawned.get(task.slot() as usize)?.as_ref()?;
        // The slot may have been used again since.
        (known.id.task() == task).then(|| known.clone())
    }
}

impl fmt::Display for RunningTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " \"{name}\"")?;
        }
        write!(f, ", spawned at {}", self.spawned_at)
    }
}

#[cfg(feature = "json")]
impl serde::Serialize for RunningTask {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
