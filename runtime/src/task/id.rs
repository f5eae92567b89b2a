//! Names of tasks that stay valid, and harmless, for ever.

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
/// other task until 2^32 tasks were spawned there; if it then does, the effect is one needless poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

#[cfg(test)]
mod tests {
    use super::*;

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
