//! What a turn spends on small pieces of work that no task is made for: so many of them, and about a turn's time.
//!
//! The clock is looked at now and then only, as the pieces are expected to be short: after as many of them as took about
//! an eighth of the time, going by those before, and after 8 at the beginning. The first few of a turn are not timed.

use std::cell::Cell;

use super::turn::TURN_NS;

/// Pieces in one turn.
const PIECES_MAX: u32 = 1024;
/// Pieces between two looks at the clock: at first, and at most. Fewer than polls, since nothing else checks them.
const PIECES_PER_LOOK_MIN: u32 = 8;
const PIECES_PER_LOOK_MAX: u32 = 64;
/// Time that may pass between two looks.
const LOOK_NS: u64 = TURN_NS / 8;

/// How much of it is used up.
#[derive(Debug)]
pub(super) struct Ration {
    used: Cell<u32>,
    /// How many will be used up at the next look.
    look_at: Cell<u32>,
    /// Pieces between two looks.
    per_look: Cell<u32>,
    /// When the first look at the clock was, and the last one.
    began_ns: Cell<u64>,
    looked_ns: Cell<u64>,
}

impl Default for Ration {
    fn default() -> Self {
        Self {
            used: Cell::new(0),
            look_at: Cell::new(PIECES_PER_LOOK_MIN),
            per_look: Cell::new(PIECES_PER_LOOK_MIN),
            began_ns: Cell::new(0),
            looked_ns: Cell::new(0),
        }
    }
}

impl Ration {
    /// A turn begins: all of it is there again.
    pub(super) fn renew(&self) {
        self.used.set(0);
        self.look_at.set(PIECES_PER_LOOK_MIN);
    }

    /// Takes a piece's share; false if nothing is left.
    #[inline]
    pub(super) fn take(&self, now_ns: impl FnOnce() -> u64) -> bool {
        let used = self.used.get();
        if used == self.look_at.get() && !self.look(used, now_ns()) {
            return false;
        }
        self.used.set(used + 1);
        true
    }

    /// Whether there is more.
    #[cold]
    fn look(&self, used: u32, now_ns: u64) -> bool {
        if used >= PIECES_MAX {
            return false;
        }
        if used == PIECES_PER_LOOK_MIN {
            self.began_ns.set(now_ns);
        } else {
            if now_ns - self.began_ns.get() > TURN_NS {
                // Nor is there any at the next look, which is the next piece.
                self.used.set(PIECES_MAX);
                self.look_at.set(PIECES_MAX);
                self.per_look.set(PIECES_PER_LOOK_MIN);
                return false;
            }
            self.pace(now_ns - self.looked_ns.get());
        }
        self.looked_ns.set(now_ns);
        self.look_at
            .set((used + self.per_look.get()).min(PIECES_MAX));
        true
    }

    /// So much time has passed since the last look.
    fn pace(&self, elapsed_ns: u64) {
        let per_look = self.per_look.get();
        let next = if elapsed_ns > LOOK_NS {
            PIECES_PER_LOOK_MIN
        } else if elapsed_ns < LOOK_NS / 2 {
            (per_look * 2).min(PIECES_PER_LOOK_MAX)
        } else {
            per_look
        };
        self.per_look.set(next);
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
        assert!(!ration.take(|| done * each_ns), "what is used up stays so");
        done
    }

    #[test]
    fn pieces_are_bounded_by_number_and_by_time() {
        let ration = Ration::default();
        assert_eq!(pieces(&ration, 10), 1024);
        assert_eq!(pieces(&ration, 10_000), 72);
        assert_eq!(pieces(&ration, 10_000), 32);
        assert_eq!(pieces(&ration, 1_000_000), 16);
        assert_eq!(pieces(&ration, 10), 1024);
    }

    #[test]
    fn the_clock_is_looked_at_rarely_while_pieces_are_short() {
        let ration = Ration::default();
        let looks = Cell::new(0);
        let mut taken = 0;
        while ration.take(|| looks.replace(looks.get() + 1)) {
            taken += 1;
        }
        assert_eq!(taken, 1024);
        assert!(looks.get() < 24, "{} looks", looks.get());
    }
}
