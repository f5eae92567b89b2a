//! The randomness seam: one seeded generator per shard.
//!
//! Not for secrets: it is a `SplitMix64` sequence, chosen because one word of state makes a run repeatable.

use std::cell::Cell;

/// A small generator owned by one shard.
#[derive(Debug)]
pub(crate) struct Rng {
    state: Cell<u64>,
}

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: Cell::new(seed),
        }
    }

    pub(crate) fn next(&self) -> u64 {
        let state = self.state.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.state.set(state);
        let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}

/// A pseudo-random number from the current shard's seeded generator.
///
/// # Panics
/// If the calling thread is no shard.
///
/// # Examples
/// ```
/// let seeded = || greenroom_runtime::Builder::new().shards(1).seed(7).start();
/// let first = seeded()?.run_on(0, || async { greenroom_runtime::random() });
/// let again = seeded()?.run_on(0, || async { greenroom_runtime::random() });
/// assert_eq!(first, again);
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[must_use]
#[track_caller]
pub fn random() -> u64 {
    crate::shard::context::with(|shard| shard.rng().next())
        .unwrap_or_else(|| panic!("random was called on a thread that is no shard"))
}
