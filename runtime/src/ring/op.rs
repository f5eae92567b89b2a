//! The life of an operation, and what dropping its future means at each point of it.
//!
//! An operation is one thing asked of the kernel: a receive, an accept, a connect. Everything the kernel may read
//! or write for it (the buffer, the address, the message header, the open socket) is its *payload*. The payload is
//! moved into a record of [`Inflight`](super::inflight::Inflight) when the operation starts and stays at that address, owned by the record and
//! by nothing else, until the kernel has said its last word. The future that waits for it holds a key, never a
//! pointer: forgetting the future, or losing it in a reference cycle, cannot free a buffer.
//!
//! ```text
//!            start            pushed to the backend           final completion          poll takes the payload
//!  (none) ─────────► Queued ───────────────────────► Submitted ────────────────► Done ─────────────────────────► (free)
//!                      │                                │   │                      │
//!            handle    │                 cancel, handle │   │ handle dropped       │ handle dropped:
//!            dropped:  │                 kept           ▼   │                      │ orphan hook, free
//!            payload   │                       Cancelling ──┼── final completion ─►│
//!            dropped,  ▼                                │   │
//!            free    (free)              handle dropped ▼   ▼
//!                                                     Orphaned ── final completion: orphan hook ─► (free)
//! ```
//!
//! * **Queued**: the record waits in the backlog; the kernel knows nothing. Dropping the handle unlinks the record
//!   in constant time: the operation never happens and the payload is dropped at once.
//! * **Submitted**: the backend has the entry. Dropping the handle asks for a cancel and leaves the record, with
//!   its payload, as *Orphaned*.
//! * **Cancelling**: a cancel was asked for, the handle still waits. Whatever the kernel answers is delivered: a
//!   success that wins the race against its own cancel is a success.
//! * **Orphaned**: nobody waits. The final completion hands payload and result to the orphan hook of the operation,
//!   which puts back what the kernel gave (closes an accepted socket, keeps received bytes for the next receive).
//! * **Done**: the result waits for the handle. Dropping the handle runs the orphan hook, for the same reason.
//!
//! An operation of *many* completions (an accept or receive that repeats itself) moves through the same states. Each of
//! its completions, marked with [`Flags::MORE`] but for the last, is handed to [`Operation::PROGRESS`] in whatever state
//! the record is, *Orphaned* included: what the kernel gave is never dropped on the way. Its handle is not the future of
//! one accept or receive, but lives in the listener or stream.
//!
//! A handle can also be *detached* (the close of a dropped file): nobody waits, and nobody asks for a cancel. A queued
//! record is then **Detached** until it is submitted, and an orphan from there on. Only the end of the shard cancels it.
//!
//! Three rules hold throughout:
//!
//! * Only the *final* completion of an operation (the one not marked [`Flags::MORE`]) ends a record. The completion
//!   of a cancel request frees nothing, whatever it says: "not found" and "already running" both mean that the
//!   completion of the target is still to come, or is already in the queue behind it. "Not found" may also be said of a
//!   send that is on its way to where it waits, so a send is asked about again ([`Operation::CAN_HIDE`]).
//! * A cancel request is never dropped. Records that want one form a list of their own, which is served before the
//!   backlog, so that a full queue delays a cancel but cannot lose it. A record whose final completion arrives
//!   while it is still on that list leaves the list and no cancel is sent.
//! * No code of a user runs while the driver is borrowed. Wakers to wake and payloads to drop are collected in
//!   [`Effects`] and run by the caller once the borrow has ended, because both may call straight back.
#![expect(
    unsafe_code,
    reason = "operations promise the kernel addresses, which only their author can vouch for"
)]

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::task::Waker;

use super::backend::EntryKind;
use super::payload::Garbage;

/// Names one operation of one driver: a slot, and which use of that slot.
///
/// The generation counts the uses of a slot and wraps after 2^32 of them. A stale completion could only be taken for
/// a live one if it stayed in the kernel while its slot was used four billion times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OpId {
    /// Invariant: below [`OpId::INDEX_END`].
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl OpId {
    /// Slots are numbered below this: the highest bit of a token's low half marks a cancel.
    pub(super) const INDEX_END: u32 = CANCEL_BIT;

    /// The value the backend hands back with each completion of this operation.
    pub(super) fn token(self) -> u64 {
        debug_assert!(
            self.index < Self::INDEX_END,
            "slot index {} out of range",
            self.index
        );
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The value the backend hands back with the completion of a request to cancel this operation.
    pub(super) fn cancel_token(self) -> u64 {
        self.token() | u64::from(CANCEL_BIT)
    }
}

const CANCEL_BIT: u32 = 1 << 31;

/// What a completion is about, read from its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// The operation itself.
    Operation(OpId),
    /// The request to cancel it.
    Cancel(OpId),
}

impl Token {
    pub(super) fn decode(token: u64) -> Token {
        let [g0, g1, g2, g3, i0, i1, i2, i3] = token.to_be_bytes();
        let low = u32::from_be_bytes([i0, i1, i2, i3]);
        let id = OpId {
            index: low & !CANCEL_BIT,
            generation: u32::from_be_bytes([g0, g1, g2, g3]),
        };
        if low & CANCEL_BIT == 0 {
            Token::Operation(id)
        } else {
            Token::Cancel(id)
        }
    }
}

/// What a backend says about an operation besides its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    /// Further completions of the same operation follow.
    pub(crate) const MORE: Flags = Flags(1);
    /// The socket held more data after this receive.
    pub(crate) const SOCKET_NONEMPTY: Flags = Flags(1 << 1);
    /// A buffer of the pool comes with this completion; its number is in the upper half.
    const BUFFER: Flags = Flags(1 << 2);

    pub(crate) fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Says that a buffer of the pool was taken for this completion, whatever its result is.
    pub(crate) fn with_buffer(self, buffer: BufferId) -> Flags {
        Flags(self.0 | Flags::BUFFER.0 | u32::from(buffer.0) << 16)
    }

    /// The buffer that was taken. It belongs to whoever asks: it has to be lent out or given back.
    pub(crate) fn buffer(self) -> Option<BufferId> {
        let [b0, b1, ..] = self.0.to_be_bytes();
        self.contains(Flags::BUFFER)
            .then(|| BufferId(u16::from_be_bytes([b0, b1])))
    }
}

/// Names one buffer of a shard's [`BufferPool`](super::pool::BufferPool).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferId(pub(super) u16);

/// One completion as a backend reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The token of the entry that completed.
    pub(crate) token: u64,
    /// The result: a count or descriptor, or a negated `errno`.
    pub(crate) result: i32,
    pub(crate) flags: Flags,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The result: a count or descriptor, or a negated `errno`.
    pub(crate) result: i32,
    pub(crate) flags: Flags,
}

impl Outcome {
    /// The outcome of an operation that was cancelled before it did anything.
    pub(crate) const CANCELLED: Outcome = Outcome {
        result: -libc::ECANCELED,
        flags: Flags(0),
    };

    /// The count or descriptor, or the error.
    pub(crate) fn into_result(self) -> io::Result<u32> {
        u32::try_from(self.result)
            .map_err(|_| io::Error::from_raw_os_error(self.result.wrapping_neg()))
    }
}

/// One kind of operation: its payload, how it is described to the kernel, and what its end means.
///
/// # Safety
///
/// Every address in the entry that [`entry`](Self::entry) returns must point into memory that
///
/// * is part of `self` where it lies, or is owned (or kept alive) by `self`,
/// * stays valid and in place until `self` is moved, consumed or dropped, and
/// * nobody reads while the kernel may write it, nor writes while the kernel may read it.
///
/// The caller keeps `self` in place, untouched, from that call to the final completion.
pub(crate) unsafe trait Operation: 'static {
    /// What waiting for the operation yields.
    type Output;

    /// The name reported when the operation is leaked at shutdown.
    const NAME: &'static str;

    /// What is done with each completion of an operation that has many; `None` if it has one.
    ///
    /// An operation that has this promises that no address in its entry points into `self`: the payload is touched
    /// while the kernel has the entry. See [`Progress`].
    const PROGRESS: Option<Progress<Self>> = None;

    /// Whether a cancel that did not find the operation is asked for again while the operation runs.
    ///
    /// io_uring takes a send up again as soon as the socket has news, and that the peer sends no more is news for as
    /// long as the connection lives. So a send to such a peer goes through the queue of the ring's own work time and
    /// again, where no cancel finds it, and then to a helper thread, where it waits for as long as the peer likes.
    const CAN_HIDE: bool = false;

    /// Describes the operation to the kernel. Called with `self` at its final address, and again only if there was no
    /// room for the entry. The driver is borrowed meanwhile.
    fn entry(&mut self) -> EntryKind;

    /// Turns payload and result into the output. The kernel is done with `self`.
    ///
    /// `outcome` is an `io::Error` of our own when the operation was refused before it started.
    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output;

    /// Disposes of an operation that nobody waits for any more. The kernel is done with `self`.
    ///
    /// The result may still carry something that must not be lost, a descriptor above all: there is no default on
    /// purpose. Runs with the driver free, on the operation's own shard, or wherever the driver is dropped.
    fn orphan(self, outcome: Outcome);
}

/// Takes note of one completion of an operation that has many, the final one included.
///
/// Runs while the driver is borrowed, so it runs no code of users: it moves what the kernel gave to where the operation's
/// owner looks for it, and leaves wakers to the effects. The waker of the operation's own handle is woken anyway.
pub(crate) type Progress<T> = fn(&mut T, Outcome, &mut Effects) -> Pace;

/// Whether an operation of many completions should go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As long as the kernel likes.
    GoOn,
    /// Enough for now: cancel it. Completions that are on their way still come.
    Stop,
}

impl Pace {
    /// How an operation ended that was last told this: it is an error if it was cancelled without having asked for that,
    /// for then the driver is closing.
    pub(super) fn end(self, outcome: io::Result<Outcome>) -> io::Result<()> {
        let outcome = outcome?;
        if outcome.result == -libc::ECANCELED && self == Pace::GoOn {
            return Err(io::Error::from_raw_os_error(libc::ECANCELED));
        }
        Ok(())
    }
}

/// What the driver wants done once it is no longer borrowed.
///
/// Running the effects runs foreign code: wakers, and the destructors of buffers. Both may start, poll or drop
/// operations of the same driver.
#[derive(Default)]
#[must_use = "wakers in here are tasks that never run again"]
pub(crate) struct Effects {
    pub(super) wakers: VecDeque<Waker>,
    pub(super) garbage: VecDeque<Garbage>,
}

impl Effects {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.wakers.is_empty() && self.garbage.is_empty()
    }

    /// Takes over what another set holds.
    pub(super) fn append(&mut self, other: &mut Effects) {
        self.wakers.append(&mut other.wakers);
        self.garbage.append(&mut other.garbage);
    }

    /// Wakes every task whose operation ended, then disposes of orphans. Keeps its memory for the next turn.
    ///
    /// If one of them panics the rest stays, for the next call.
    pub(crate) fn run(&mut self) {
        while let Some(waker) = self.wakers.pop_front() {
            waker.wake();
        }
        while let Some(garbage) = self.garbage.pop_front() {
            drop(garbage);
        }
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Effects")
            .field("wakers", &self.wakers.len())
            .field("garbage", &self.garbage.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_round_trips_at_the_edges() {
        for index in [0, 1, OpId::INDEX_END - 1] {
            for generation in [0, 1, u32::MAX] {
                let id = OpId { index, generation };
                assert_eq!(Token::decode(id.token()), Token::Operation(id));
                assert_eq!(Token::decode(id.cancel_token()), Token::Cancel(id));
            }
        }
    }

    #[test]
    fn flags_carry_any_buffer() {
        for id in [0, 1, 255, 256, u16::MAX] {
            let flags = Flags::MORE.with_buffer(BufferId(id));
            assert_eq!(flags.buffer(), Some(BufferId(id)));
            assert!(flags.contains(Flags::MORE) && !flags.contains(Flags::SOCKET_NONEMPTY));
        }
        assert_eq!(Flags::MORE.with(Flags::SOCKET_NONEMPTY).buffer(), None);
    }

    #[test]
    fn negative_results_are_errors_of_the_system() {
        let outcome = Outcome {
            result: -libc::ECONNRESET,
            flags: Flags::default(),
        };
        assert_eq!(
            outcome.into_result().unwrap_err().kind(),
            io::ErrorKind::ConnectionReset
        );
        assert_eq!(
            Outcome {
                result: 7,
                flags: Flags::MORE
            }
            .into_result()
            .unwrap(),
            7
        );
    }
}
