//! What a turn spends on small pieces of work that no task is made for: so many of them, and about a turn's time.
//!
//! The clock is looked at with every eighth piece only, as they are expected to be short. The first few are not timed.

use std::cell::Cell;

use super::turn::TURN_NS;

/// Pieces in one turn.
const PIECES_MAX: u32 = 256;
/// Pieces between two looks at the clock: fewer than polls, since nothing else checks them.
const PIECES_PER_CLOCK: u32 = 8;

/// How much of it is used up.
#[derive(Debug, Default)]
pub(super) struct Ration {
    used: Cell<u32>,
    /// When the first look at the clock was.
    began_ns: Cell<u64>,
}

impl Ration {
    /// A turn begins: all of it is there again.
    pub(super) fn renew(&self) {
        self.used.set(0);
    }

    /// Takes a piece's share; false if nothing is left.
    #[inline]
    pub(super) fn take(&self, now_ns: impl FnOnce() -> u64) -> bool {
        let used = self.used.get();
        if used >= PIECES_MAX {
            return false;
        }
        self.used.set(used + 1);
        if used % PIECES_PER_CLOCK == PIECES_PER_CLOCK - 1 {
            self.look(used, now_ns());
        }
        true
    }

    #[cold]
    fn look(&self, used: u32, now_ns: u64) {
        if used < PIECES_PER_CLOCK {
            self.began_ns.set(now_ns);
        } else if now_ns - self.began_ns.get() > TURN_NS {
            self.used.set(PIECES_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes what there is, for pieces of one length; returns how many it was.
    fn pieces(ration: &Ration, each_ns: u64) -> u64 {
        let mut done = 0;
        ration.renew();
        while ration.take(|| done * each_ns) {
            done += 1;
        }
        done
    }

    #[test]
    fn pieces_are_bounded_by_number_and_by_time() {
        let ration = Ration::default();
        assert_eq!(pieces(&ration, 10), 256);
        assert_eq!(pieces(&ration, 10_000), 32);
        assert_eq!(pieces(&ration, 1_000_000), 16);
        assert_eq!(pieces(&ration, 10), 256);
    }

    #[test]
    fn the_clock_is_looked_at_with_every_eighth_piece() {
        let ration = Ration::default();
        let looks = Cell::new(0);
        while ration.take(|| looks.replace(looks.get() + 1)) {}
        assert_eq!(looks.get(), 32);
    }
}
