//! When an answer is due: for the slot that waits for it, and for whoever is to give it.
//!
//! A slot keeps its due time in *ticks* of about a millisecond, and the shard looks now and then which of its slots are
//! overdue: that costs nothing for each answer. The key, which has 14 bits to spare, takes the time along, rounded up:
//! whoever answers may want to know how long the asker waits.

use crate::shard::{Shard, context};
use crate::time::Instant;

/// A tick is 2^20 nanoseconds.
const TICK_SHIFT: u32 = 20;
/// Time between two looks, at least.
const GAP_TICKS: u32 = 61;
/// Slots looked at for each further tick between two looks, so that looking stays a small part of what the shard does.
const SLOTS_PER_GAP_TICK: u32 = 2048;

/// When the answer to an ask is due.
///
/// # Examples
/// ```
/// use greenroom_runtime::mesh::{self, Due, Unanswered};
/// use greenroom_runtime::time::Instant;
/// use std::time::Duration;
///
/// let runtime = greenroom_runtime::Builder::new().shards(1).start()?;
/// let answer = runtime.run_on(0, || async {
///     let due = Due::watched(Instant::now() + Duration::from_millis(5));
///     let (slot, key) = mesh::open::<u32>(due).unwrap();
///     assert!(key.note().deadline().is_some());
///     slot.await
/// });
/// assert_eq!(answer, Err(Unanswered::Overdue));
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The tick after which the slot is overdue; zero for never.
    pub(super) tick: u32,
    pub(super) noted: Noted,
}

impl Due {
    /// No limit.
    pub const NEVER: Self = Self {
        tick: 0,
        noted: Noted(0),
    };

    /// The slot resolves to [`Unanswered::Overdue`] some time after this moment: at most about a tenth of a second, on
    /// a shard with a million open slots half a second.
    ///
    /// [`Unanswered::Overdue`]: super::Unanswered::Overdue
    #[must_use]
    pub fn watched(at: Instant) -> Self {
        Self {
            tick: tick_after(at.ns()),
            noted: Noted::of(at),
        }
    }

    /// Whoever waits keeps time itself; the moment is only passed on with the key.
    #[must_use]
    pub fn noted(at: Instant) -> Self {
        Self {
            tick: 0,
            noted: Noted::of(at),
        }
    }

    /// The shard's usual limit, counted from the turn that runs; see [`crate::Builder::reply_limit`].
    #[must_use]
    #[inline]
    pub fn usual() -> Self {
        context::with(|shard| match shard.usual_due_ns() {
            None => Self::NEVER,
            Some(at_ns) => Self {
                tick: tick_after(at_ns),
                noted: Noted::at(at_ns, shard.turn_ns()),
            },
        })
        .unwrap_or_default()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "ticks are compared with others of about the same time, and wrap in fifty days"
)]
fn tick_after(at_ns: u64) -> u32 {
    // Zero means never.
    (((at_ns >> TICK_SHIFT) + 1) as u32).max(1)
}

/// The tick that has passed last.
#[expect(clippy::cast_possible_truncation, reason = "as above")]
fn tick_now(now_ns: u64) -> u32 {
    (now_ns >> TICK_SHIFT) as u32
}

/// Whether a tick lies before another one, up to 25 days apart.
#[inline]
pub(super) fn is_before(tick: u32, other: u32) -> bool {
    tick.wrapping_sub(other).cast_signed() < 0
}

/// How many ticks from now the tick after a look is, at least.
fn gap(slots: usize) -> u32 {
    GAP_TICKS + u32::try_from(slots).unwrap_or(u32::MAX) / SLOTS_PER_GAP_TICK
}

/// Nanoseconds from a tick that was reckoned up from now.
fn ns_of_tick(tick: u32, now_ns: u64) -> u64 {
    let ahead = tick.wrapping_sub(tick_now(now_ns)).cast_signed().max(0);
    ((now_ns >> TICK_SHIFT) + u64::from(ahead.unsigned_abs())) << TICK_SHIFT
}

/// A moment in 14 bits, rounded up; zero for none.
///
/// 13 bits count units of time and wrap; the 14th says which unit: 8.4 ms for moments less than half a minute away,
/// 1.1 s for those less than 70 minutes away. One that is farther away is not noted. Read within as long again as it was
/// away, it is the moment that was meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted(u16);

const FINE_SHIFT: u32 = 23;
const COARSE_SHIFT: u32 = 30;
/// Half of the range of the fine unit, less a margin.
const FINE_NS: u64 = 30_000_000_000;
/// Likewise of the coarse unit.
const COARSE_NS: u64 = 70 * 60 * 1_000_000_000;
const COUNT_BITS: u32 = 13;
const COUNT: u16 = (1 << COUNT_BITS) - 1;
const IS_COARSE: u16 = 1 << COUNT_BITS;

impl Noted {
    fn of(at: Instant) -> Self {
        Self::at(at.ns(), crate::clock::now_ns_anywhere())
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the count wraps; see the type"
    )]
    pub(super) fn at(at_ns: u64, now_ns: u64) -> Self {
        let away_ns = at_ns.saturating_sub(now_ns);
        if away_ns < FINE_NS {
            let count = ((at_ns >> FINE_SHIFT) + 1) as u16 & COUNT;
            // Zero means none: one unit later.
            Self(count.max(1))
        } else if away_ns < COARSE_NS {
            Self(((at_ns >> COARSE_SHIFT) + 1) as u16 & COUNT | IS_COARSE)
        } else {
            Self(0)
        }
    }

    pub(super) fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    #[inline]
    pub(super) fn bits(self) -> u16 {
        self.0
    }

    /// The moment, as seen from now.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the count wraps; see the type"
    )]
    pub(super) fn read(self, now_ns: u64) -> Option<u64> {
        if self.0 == 0 {
            return None;
        }
        let shift = if self.0 & IS_COARSE == 0 {
            FINE_SHIFT
        } else {
            COARSE_SHIFT
        };
        let now = now_ns >> shift;
        // The difference as a signed number of 13 bits.
        let spare = u16::BITS - COUNT_BITS;
        let ahead = ((self.0 & COUNT).wrapping_sub(now as u16) << spare).cast_signed() >> spare;
        Some(now.saturating_add_signed(i64::from(ahead)) << shift)
    }
}

impl Shard {
    /// Looks for overdue slots at this tick, which comes before the next look that was planned.
    #[cold]
    pub(super) fn look_for_overdue_at(&self, tick: u32) {
        self.replies().borrow_mut().set_next_look(tick);
        let at_ns = ns_of_tick(tick, self.now_ns());
        self.reply_alarm().set(self, at_ns, || {
            context::with(Self::mark_overdue);
        });
    }

    fn mark_overdue(&self) {
        let now_ns = self.now_ns();
        let now = tick_now(now_ns);
        let mut wakers = Vec::new();
        let (next, slots) = {
            let mut replies = self.replies().borrow_mut();
            (replies.mark_overdue(now, &mut wakers), replies.slot_count())
        };
        if next == 0 {
            self.replies().borrow_mut().set_next_look(0);
        } else {
            let soonest = now.wrapping_add(gap(slots));
            // Zero means never.
            let next = if is_before(next, soonest) {
                soonest.max(1)
            } else {
                next
            };
            self.look_for_overdue_at(next);
        }
        // Last: a waker may be anybody's.
        for waker in wakers {
            self.contain(|| waker.wake());
        }
    }
}

/// The usual limit of the current shard's answers; `None` where there is none, and on a thread that is no shard.
#[must_use]
pub fn usual_limit() -> Option<std::time::Duration> {
    context::with(Shard::reply_limit).flatten()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1000 * MS;

    #[test]
    fn a_noted_moment_is_read_as_it_was_or_a_little_later() {
        for now in [
            0,
            1,
            5 * S,
            68 * S + 7,
            40 * 3600 * S,
            u64::from(u32::MAX) * MS,
        ] {
            for away in [0, 1, 5 * MS, S, 29 * S] {
                let read = Noted::at(now + away, now).read(now).unwrap();
                assert!(
                    (now + away..=now + away + 17 * MS).contains(&read),
                    "{now} {away} {read}"
                );
            }
            for away in [30 * S, 300 * S, 4000 * S] {
                let read = Noted::at(now + away, now).read(now).unwrap();
                assert!(
                    (now + away..=now + away + 2 * S).contains(&read),
                    "{now} {away} {read}"
                );
            }
            assert_eq!(Noted::at(now + 4300 * S, now), Noted(0));
        }
    }

    #[test]
    fn a_noted_moment_may_be_read_later() {
        let (sent, at) = (1000 * S, 1010 * S);
        let noted = Noted::at(at, sent);
        for now in [sent + S, at, at + S, at + 20 * S] {
            let read = noted.read(now).unwrap();
            assert!((at..at + 17 * MS).contains(&read), "{now} {read}");
        }
    }

    #[test]
    fn ticks_wrap() {
        assert!(is_before(u32::MAX, 1));
        assert!(!is_before(1, u32::MAX));
        let near_wrap = (u64::from(u32::MAX) << TICK_SHIFT) + 5;
        assert_eq!(tick_after(near_wrap), 1, "zero means never");
        assert_eq!(
            ns_of_tick(1, near_wrap) >> TICK_SHIFT,
            u64::from(u32::MAX) + 2
        );
    }
}
