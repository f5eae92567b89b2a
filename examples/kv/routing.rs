//! Which shard owns a key.

use std::hash::BuildHasher;

use foldhash::quality::FixedState;

/// One of the shards of the server, counted from zero.
pub(crate) type ShardIndex = u16;

/// The one rule that every connection follows to find the shard of a key.
///
/// Its hash differs from that of the tables in kind and in seed. If they were alike, all keys of a shard would share
/// the bits that chose the shard, and crowd into a part of its table.
#[derive(Clone, Debug)]
pub(crate) struct Routing {
    shards: ShardIndex,
    hasher: FixedState,
}

impl Routing {
    const SEED: u64 = 0x6B65_7920_746F_2073;

    pub(crate) fn new(shards: ShardIndex) -> Self {
        Routing {
            shards,
            hasher: FixedState::with_seed(Self::SEED),
        }
    }

    pub(crate) fn shards(&self) -> ShardIndex {
        self.shards
    }

    pub(crate) fn shard(&self, key: &[u8]) -> ShardIndex {
        if self.shards == 1 {
            return 0;
        }
        let scaled = (u128::from(self.hasher.hash_one(key)) * u128::from(self.shards)) >> 64;
        ShardIndex::try_from(scaled).expect("the product is below the number of shards")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_spread_evenly() {
        let routing = Routing::new(5);
        let mut owned = [0u32; 5];
        for number in 0..10_000 {
            owned[usize::from(routing.shard(format!("key:{number}").as_bytes()))] += 1;
        }
        assert!(
            owned.iter().all(|count| (1800..2200).contains(count)),
            "{owned:?}"
        );
    }
}
