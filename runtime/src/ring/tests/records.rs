//! Test operations: one that tracks its buffer and its end, and payloads of all shapes.
#![expect(
    unsafe_code,
    reason = "operations hand out addresses of their own memory"
)]

use std::io;
use std::rc::Rc;

use super::Ledger;
use crate::ring::backend::EntryKind;
use crate::ring::fake::memory::Tracked;
use crate::ring::op::{Operation, Outcome};

/// Reads into a tracked buffer, and enters its end in the ledger.
pub(super) struct TrackedRead {
    buffer: Tracked,
    ledger: Rc<Ledger>,
    /// Set once `complete` or `orphan` took over.
    is_settled: bool,
}

impl TrackedRead {
    pub(super) const LEN: usize = 16;

    pub(super) fn new(ledger: &Rc<Ledger>) -> TrackedRead {
        TrackedRead {
            buffer: Tracked::new(TrackedRead::LEN),
            ledger: Rc::clone(ledger),
            is_settled: false,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }
}

// SAFETY: the address is that of a heap buffer owned by the payload.
unsafe impl Operation for TrackedRead {
    type Output = io::Result<u32>;
    const NAME: &'static str = "tracked read";

    fn entry(&mut self) -> EntryKind {
        let len = u32::try_from(TrackedRead::LEN).unwrap();
        EntryKind::Read {
            fd: -1,
            ptr: self.buffer.as_mut_ptr(),
            len,
        }
    }

    fn complete(mut self, outcome: io::Result<Outcome>) -> Self::Output {
        self.is_settled = true;
        let result = outcome.and_then(Outcome::into_result);
        if result.is_ok() {
            Ledger::add(&self.ledger.delivered);
        }
        result
    }

    fn orphan(mut self, outcome: Outcome) {
        self.is_settled = true;
        if outcome.result >= 0 {
            Ledger::add(&self.ledger.orphaned);
        }
    }
}

impl Drop for TrackedRead {
    fn drop(&mut self) {
        if !self.is_settled {
            Ledger::add(&self.ledger.dropped);
        }
    }
}

/// A payload of `N` bytes inside the record, or in a box if it is too large.
#[repr(align(16))]
pub(in crate::ring) struct Inline<const N: usize>(pub(in crate::ring) [u8; N]);

// SAFETY: the address points into the payload itself.
unsafe impl<const N: usize> Operation for Inline<N> {
    type Output = [u8; N];
    const NAME: &'static str = "inline";

    fn entry(&mut self) -> EntryKind {
        EntryKind::Read {
            fd: -1,
            ptr: self.0.as_mut_ptr(),
            len: u32::try_from(N).unwrap(),
        }
    }

    fn complete(self, _outcome: io::Result<Outcome>) -> [u8; N] {
        self.0
    }

    fn orphan(self, _outcome: Outcome) {}
}

/// A payload that needs a stricter alignment than records have.
#[repr(align(64))]
pub(super) struct Aligned(pub(super) [u8; 8]);

// SAFETY: the address points into the payload itself.
unsafe impl Operation for Aligned {
    type Output = [u8; 8];
    const NAME: &'static str = "aligned";

    fn entry(&mut self) -> EntryKind {
        assert_eq!(
            (&raw const *self).addr() % 64,
            0,
            "the payload lies at its alignment"
        );
        EntryKind::Read {
            fd: -1,
            ptr: self.0.as_mut_ptr(),
            len: 8,
        }
    }

    fn complete(self, _outcome: io::Result<Outcome>) -> [u8; 8] {
        self.0
    }

    fn orphan(self, _outcome: Outcome) {}
}
