//! What takes an actor away from its messages.

use std::cell::Cell;

/// A reason to look up from the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Summons {
    /// Its task is dropped as soon as it is not being polled.
    Kill = 1,
    /// It has failed: its reason lies with its bonds.
    Fail = 1 << 1,
    /// The handler that waits is to be given up.
    Cut = 1 << 2,
    /// Its supervisor restarts it together with others.
    Halt = 1 << 3,
    /// An event waits for a hook.
    Event = 1 << 4,
}

/// The summonses that were not answered, in one byte: each turn of the serving loop looks at it once.
#[derive(Debug, Default)]
pub(crate) struct Summonses(Cell<u8>);

impl Summonses {
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.0.get() == 0
    }

    #[inline]
    pub(crate) fn has(&self, summons: Summons) -> bool {
        self.0.get() & summons as u8 != 0
    }

    pub(crate) fn raise(&self, summons: Summons) {
        self.0.set(self.0.get() | summons as u8);
    }

    pub(crate) fn clear(&self, summons: Summons) {
        self.0.set(self.0.get() & !(summons as u8));
    }
}
