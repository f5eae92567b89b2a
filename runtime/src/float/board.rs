//! What the shards of one runtime share of the float lane: the ends of their lanes to steal from, and the overflow.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_deque::{Injector, Steal, Stealer, Worker};

use super::notices::Notices;
use crate::shard::ShardId;

/// A piece of work that any shard may take. Dropped without having been called, it tells whoever waits that it was
/// cancelled.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// Pieces of work in the overflow, over all shards. What comes then is bound to the shard that submits it.
///
/// Each shard may be one over it, because the length is looked at before the push and not with it.
pub(super) const OVERFLOW_MAX: usize = 65_536;
/// The most that one steal takes.
const STEAL_MAX: usize = 128;
/// How often a lane is tried whose owner, or another thief, was faster.
const STEAL_TRIES: usize = 8;

/// The shared half of the float lanes of one runtime.
pub(crate) struct Board {
    pub(super) notices: Notices,
    /// The lanes of all shards, to steal from.
    lanes: Box<[Stealer<Work>]>,
    /// What did not fit into the lane of the shard that submitted it.
    overflow: Injector<Work>,
    /// Whether work moves at all: asked for, and there is more than one shard.
    moves: bool,
    /// Counts submissions from outside of the runtime, which go round the shards.
    submissions: AtomicUsize,
}

/// What a look for work in other lanes has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stolen {
    /// Work, which is in the thief's lane now, and so much that was left behind.
    Some {
        /// How much the victim still has.
        rest: usize,
    },
    /// Others took all that was seen, or were faster: worth another look.
    Contended,
    /// There was nothing.
    None,
}

impl Board {
    /// Makes the board of so many shards, and the lane of each.
    pub(crate) fn new(shards: usize, enabled: bool) -> (Self, Vec<Worker<Work>>) {
        let lanes: Vec<_> = (0..shards).map(|_| Worker::new_fifo()).collect();
        let board = Self {
            notices: Notices::new(shards),
            lanes: lanes.iter().map(Worker::stealer).collect(),
            overflow: Injector::new(),
            moves: enabled && shards > 1,
            submissions: AtomicUsize::new(0),
        };
        (board, lanes)
    }

    pub(super) fn moves(&self) -> bool {
        self.moves
    }

    /// The shard whose turn it is to take a submission from outside.
    pub(super) fn next_shard(&self) -> ShardId {
        // ORDERING: Relaxed; a count, which publishes nothing.
        let submission = self.submissions.fetch_add(1, Ordering::Relaxed);
        ShardId::at(submission % self.lanes.len())
    }

    /// Adds to the overflow, or gives the work back when that is full.
    pub(super) fn overflow(&self, work: Work) -> Result<(), Work> {
        if self.overflow.len() >= OVERFLOW_MAX {
            return Err(work);
        }
        self.overflow.push(work);
        Ok(())
    }

    pub(super) fn overflow_len(&self) -> usize {
        self.overflow.len()
    }

    /// Moves at most `room` pieces from the overflow to a lane.
    pub(super) fn refill(&self, lane: &Worker<Work>, room: usize) -> Stolen {
        if room == 0 || self.overflow.is_empty() {
            return Stolen::None;
        }
        let limit = room.min(STEAL_MAX);
        persist(
            || self.overflow.steal_batch_with_limit(lane, limit),
            || self.overflow.len(),
        )
    }

    /// Moves half of what some other shard has, or of the overflow, to the empty lane of a thief.
    pub(super) fn steal(&self, thief: usize, lane: &Worker<Work>, start: usize) -> Stolen {
        let mut found = self.refill(lane, STEAL_MAX);
        for victim in self
            .notices
            .lanes_from(start)
            .filter(|&victim| victim != thief)
        {
            if let Stolen::Some { .. } = found {
                return found;
            }
            let victim = &self.lanes[victim];
            let taken = persist(
                || victim.steal_batch_with_limit(lane, STEAL_MAX),
                || victim.len(),
            );
            if taken != Stolen::None {
                found = taken;
            }
        }
        found
    }

    /// Whether any lane but the thief's has work to give, or the overflow has.
    pub(crate) fn has_work_for(&self, thief: usize) -> bool {
        self.notices.any()
            && (!self.overflow.is_empty()
                || self
                    .notices
                    .lanes_from(0)
                    .any(|lane| lane != thief && !self.lanes[lane].is_empty()))
    }

    /// Takes out one piece of work, wherever it is. For the end, when nobody is to do it any more.
    pub(super) fn take_any(&self) -> Option<Work> {
        loop {
            let all = self.lanes.iter().map(Stealer::steal);
            let taken: Steal<Work> = all
                .chain(std::iter::once_with(|| self.overflow.steal()))
                .collect();
            match taken {
                Steal::Success(work) => return Some(work),
                Steal::Empty => return None,
                Steal::Retry => std::hint::spin_loop(),
            }
        }
    }
}

/// Tries a steal until somebody has won, but not for ever.
fn persist(steal: impl Fn() -> Steal<()>, rest: impl Fn() -> usize) -> Stolen {
    for _ in 0..STEAL_TRIES {
        match steal() {
            Steal::Success(()) => return Stolen::Some { rest: rest() },
            Steal::Empty => return Stolen::None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
    Stolen::Contended
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board")
            .field("moves", &self.moves)
            .field("overflow", &self.overflow.len())
            .finish_non_exhaustive()
    }
}
