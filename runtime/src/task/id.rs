//! Names of tasks that stay valid, and harmless, for ever.

use std::fmt;

use crate::shard::ShardNumber;

/// Bits of a packed id that hold the shard's number.
const SHARD_BITS: u32 = 10;
/// Bits of a packed id that hold the slot.
const SLOT_BITS: u32 = 22;

/// The number of task slots a shard can have.
pub(crate) const SLOT_COUNT_MAX: u32 = 1 << SLOT_BITS;

/// A task's shard, slot and generation, packed into 64 bits so that a waker can carry it in place of a pointer.
///
/// A slot's generation is taken from a counter of the shard that lives as long as the process, so a stale id names no
/// other task until 2^32 tasks were spawned there; if it then does, the effect is one needless poll. What must never hit a
/// stranger goes by [`Id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskId(u64);

impl TaskId {
    pub(crate) fn new(shard: ShardNumber, slot: u32, generation: u32) -> Self {
        debug_assert!(slot < SLOT_COUNT_MAX, "slot {slot} does not fit");
        debug_assert!(
            u32::from(shard.index()) < 1 << SHARD_BITS,
            "shard {shard:?} does not fit"
        );
        Self(u64::from(generation) << 32 | u64::from(shard.index()) << SLOT_BITS | u64::from(slot))
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn shard(self) -> ShardNumber {
        let index = self.0 >> SLOT_BITS & ((1 << SHARD_BITS) - 1);
        ShardNumber::new(u16::try_from(index).expect("ten bits fit in sixteen"))
    }

    pub(crate) fn slot(self) -> u32 {
        u32::try_from(self.0 & u64::from(SLOT_COUNT_MAX - 1)).expect("22 bits fit in 32")
    }

    pub(crate) fn generation(self) -> u32 {
        u32::try_from(self.0 >> 32).expect("the upper half fits in 32 bits")
    }
}

/// The name of a task: no other task of the process, past or future, has the same.
///
/// # Examples
/// ```
/// # let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// use greenroom_runtime::{spawn, task};
/// runtime.run_on(0, || async {
///     let other = spawn(async { task::id() });
///     let id = other.id();
///     assert_eq!(other.await.unwrap(), Some(id));
///     assert_ne!(task::id(), Some(id));
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// The upper half of the shard's count of generations; the lower half stands in the task id.
    ///
    /// First, so that of two tasks of a shard the one that was spawned earlier is the lesser.
    epoch: u32,
    task: TaskId,
}

impl Id {
    /// `generation` is one that the shard gives out once.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves are what is wanted"
    )]
    pub(crate) fn new(shard: ShardNumber, slot: u32, generation: u64) -> Self {
        Self {
            epoch: (generation >> 32) as u32,
            task: TaskId::new(shard, slot, generation as u32),
        }
    }

    pub(crate) fn from_parts(task: TaskId, epoch: u32) -> Self {
        Self { epoch, task }
    }

    pub(crate) fn task(self) -> TaskId {
        self.task
    }

    pub(crate) fn epoch(self) -> u32 {
        self.epoch
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generation = u64::from(self.epoch) << 32 | u64::from(self.task.generation());
        write!(
            f,
            "{}.{}.{generation}",
            self.task.shard().index(),
            self.task.slot()
        )
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_the_whole_generation() {
        let shard = ShardNumber::new(3);
        let (early, late) = (Id::new(shard, 9, 7), Id::new(shard, 1, 7 + (1 << 32)));
        assert_eq!(early.task().generation(), late.task().generation());
        assert_ne!(early, late);
        assert!(early < late, "ids are in the order of the spawns");
        assert_eq!(late.to_string(), "3.1.4294967303");
        assert_eq!(Id::from_parts(late.task(), late.epoch()), late);
    }

    #[test]
    fn parts_survive_packing() {
        for (shard, slot, generation) in [
            (0, 0, 0),
            (1023, SLOT_COUNT_MAX - 1, u32::MAX),
            (7, 12_345, 1 << 31),
        ] {
            let id =
                TaskId::from_bits(TaskId::new(ShardNumber::new(shard), slot, generation).bits());
            assert_eq!(
                (id.shard().index(), id.slot(), id.generation()),
                (shard, slot, generation)
            );
        }
    }
}
