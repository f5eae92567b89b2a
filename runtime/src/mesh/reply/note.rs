//! What a key says of its ask.

use std::fmt;

use super::due::Noted;
use crate::clock::now_ns_anywhere;
use crate::shard::{SHARD_NUMBER_COUNT, Shard, ShardNumber, context};
use crate::time::Instant;

/// A shard and, in the 14 bits that its number leaves of three bytes, when the answer is due.
#[derive(Clone, Copy)]
pub(super) struct Home([u8; 3]);

const NUMBER_BITS: u32 = SHARD_NUMBER_COUNT.trailing_zeros();
const _: () = assert!(SHARD_NUMBER_COUNT.is_power_of_two() && NUMBER_BITS + 14 == 24);

impl Home {
    #[inline]
    pub(super) fn new(shard: ShardNumber, due: Noted) -> Self {
        let word = u32::from(shard.index()) | u32::from(due.bits()) << NUMBER_BITS;
        let [a, b, c, _] = word.to_le_bytes();
        Self([a, b, c])
    }

    /// What [`Home::word`] gave, in the lower 24 bits.
    #[inline]
    pub(super) fn from_word(word: u32) -> Self {
        let [a, b, c, _] = word.to_le_bytes();
        Self([a, b, c])
    }

    /// 24 bits.
    #[inline]
    pub(super) fn word(self) -> u32 {
        let [a, b, c] = self.0;
        u32::from_le_bytes([a, b, c, 0])
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves ten bits")]
    pub(super) fn shard(self) -> ShardNumber {
        ShardNumber::new((self.word() & (u32::from(SHARD_NUMBER_COUNT) - 1)) as u16)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the shift leaves 14 bits")]
    fn due(self) -> Noted {
        Noted::from_bits((self.word() >> NUMBER_BITS) as u16)
    }
}

/// Names one ask of a shard, in the whole process and for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskId {
    generation: u64,
    shard: ShardNumber,
}

/// What a key says of its ask: which one it is, and when the answer is due. 16 bytes.
#[derive(Clone, Copy)]
pub struct AskNote {
    generation: u64,
    home: Home,
    /// Of a thread that is no shard: then the generation says nothing.
    is_outside: bool,
}

const _: () = assert!(size_of::<Option<AskNote>>() == 16);

impl AskId {
    /// A name for a wait that has no slot; `None` on a thread that is no shard.
    #[must_use]
    pub fn take() -> Option<Self> {
        context::with(|shard| Self::new(shard.next_generation(), shard.number()))
    }

    /// Its number among those of its shard, never zero. The younger of two has the greater one.
    #[must_use]
    #[inline]
    pub fn number(self) -> u64 {
        self.generation
    }

    pub(super) fn new(generation: u64, shard: ShardNumber) -> Self {
        Self { generation, shard }
    }
}

impl AskNote {
    #[inline]
    pub(super) fn new(generation: u64, home: Home) -> Self {
        Self {
            generation,
            home,
            is_outside: false,
        }
    }

    #[cold]
    pub(super) fn outside(home: Home) -> Self {
        Self {
            generation: 0,
            home,
            is_outside: true,
        }
    }

    /// Which ask it is; `None` for one from a thread that is no shard.
    #[must_use]
    pub fn ask(self) -> Option<AskId> {
        (!self.is_outside).then(|| AskId {
            generation: self.generation,
            shard: self.home.shard(),
        })
    }

    /// When the answer is due, rounded up; `None` if there is no limit, or one more than an hour away.
    ///
    /// # Shard affinity
    /// Any thread.
    #[must_use]
    pub fn deadline(self) -> Option<Instant> {
        let now_ns = context::with(Shard::turn_ns).unwrap_or_else(now_ns_anywhere);
        self.home.due().read(now_ns).map(Instant::from_ns)
    }
}

impl fmt::Debug for AskNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskNote")
            .field("ask", &self.ask())
            .field("deadline", &self.deadline())
            .finish()
    }
}
