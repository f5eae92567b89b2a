//! What the shards of one runtime have in common.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::ring::RingShared;
use crate::blocking::pool::Pool;
use crate::float::board::Board;
use crate::observe::pulse::Pulse;
use crate::shard::registry::{self, SharedShard};
use crate::shard::{SHARD_NUMBER_COUNT, ShardId, ShardNumber};

/// The shards of one runtime and the rings between them. Shared by all of them, and by handles.
pub(crate) struct Team {
    numbers: Box<[ShardNumber]>,
    /// Place in this team by process-wide number; `u16::MAX` for strangers.
    places: Box<[u16]>,
    /// The ring from shard `f` to shard `t`, at `f * count + t`, once it was used.
    rings: Box<[OnceLock<Arc<RingShared>>]>,
    link_bytes: usize,
    /// Threads for what must not run on a shard.
    blocking: Arc<Pool>,
    /// Work that may move between the shards.
    board: Board,
    /// What each shard shows while it is busy; empty if nobody watches.
    pulses: Box<[Arc<Pulse>]>,
    stopping: AtomicU8,
    /// How many shards have dropped their tasks and finished their I/O.
    quiet: AtomicUsize,
    /// Operations whose memory had to be leaked because the kernel did not give it back.
    leaked: AtomicUsize,
    /// What ended a shard's own loop, to be thrown again by whoever joins.
    failure: Mutex<Option<Box<dyn std::any::Any + Send>>>,
}

impl Team {
    pub(crate) fn new(
        numbers: Box<[ShardNumber]>,
        link_bytes: usize,
        blocking: Pool,
        board: Board,
        pulses: Box<[Arc<Pulse>]>,
    ) -> Self {
        let mut places = vec![u16::MAX; usize::from(SHARD_NUMBER_COUNT)].into_boxed_slice();
        for (place, number) in (0_u16..).zip(&numbers) {
            places[usize::from(number.index())] = place;
        }
        let rings = (0..numbers.len() * numbers.len())
            .map(|_| OnceLock::new())
            .collect();
        Self {
            numbers,
            places,
            rings,
            link_bytes,
            blocking: Arc::new(blocking),
            board,
            pulses,
            stopping: AtomicU8::new(0),
            quiet: AtomicUsize::new(0),
            leaked: AtomicUsize::new(0),
            failure: Mutex::new(None),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The place of a shard in this runtime; `None` for a shard of another one.
    pub(crate) fn place(&self, number: ShardNumber) -> Option<ShardId> {
        let place = self.places[usize::from(number.index())];
        (place != u16::MAX).then(|| ShardId::from(place))
    }

    pub(crate) fn number(&self, shard: ShardId) -> Option<ShardNumber> {
        self.numbers.get(shard.index()).copied()
    }

    pub(crate) fn shared(&self, shard: ShardId) -> &'static SharedShard {
        registry::shared(self.numbers[shard.index()])
            .expect("the shards of a team hold their numbers")
    }

    pub(crate) fn pulse(&self, shard: ShardId) -> Option<&Arc<Pulse>> {
        self.pulses.get(shard.index())
    }

    pub(crate) fn board(&self) -> &Board {
        &self.board
    }

    /// The ring of a pair; made here if the sender asks for the first time.
    pub(crate) fn ring_or_make(&self, from: ShardId, to: ShardId) -> &Arc<RingShared> {
        self.slot(from, to)
            .get_or_init(|| Arc::new(RingShared::new(self.link_bytes)))
    }

    /// The ring of a pair, if anything was ever sent on it.
    pub(crate) fn ring(&self, from: ShardId, to: ShardId) -> Option<&Arc<RingShared>> {
        self.slot(from, to).get()
    }

    fn slot(&self, from: ShardId, to: ShardId) -> &OnceLock<Arc<RingShared>> {
        &self.rings[from.index() * self.len() + to.index()]
    }

    pub(crate) fn blocking(&self) -> &Arc<Pool> {
        &self.blocking
    }

    pub(crate) fn notify_all(&self) {
        for number in &self.numbers {
            if let Some(shared) = registry::shared(*number) {
                shared.notify();
            }
        }
    }

    /// Asks every shard to stop; with a payload if one of them failed. The first failure is kept.
    pub(crate) fn stop(&self, failure: Option<Box<dyn std::any::Any + Send>>) {
        if let Some(failure) = failure {
            self.failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(failure);
        }
        // ORDERING: Release; pairs with the load in `is_stopping`. The wake-up itself is carried by the handshake.
        self.stopping.store(1, Ordering::Release);
        self.notify_all();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // ORDERING: Acquire; pairs with the store in `stop`.
        self.stopping.load(Ordering::Acquire) != 0
    }

    pub(crate) fn take_failure(&self) -> Option<Box<dyn std::any::Any + Send>> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// One more shard holds no tasks and no I/O. It goes on serving its peers until all are quiet.
    pub(crate) fn report_quiet(&self) {
        // ORDERING: AcqRel; pairs with the load in `all_quiet`: what a shard sent before it went quiet is seen.
        self.quiet.fetch_add(1, Ordering::AcqRel);
        self.notify_all();
    }

    pub(crate) fn report_leaks(&self, operations: usize) {
        // ORDERING: Relaxed; read after the threads were joined.
        self.leaked.fetch_add(operations, Ordering::Relaxed);
    }

    pub(crate) fn leaked(&self) -> usize {
        // ORDERING: Relaxed; see `report_leaks`.
        self.leaked.load(Ordering::Relaxed)
    }

    pub(crate) fn all_quiet(&self) -> bool {
        // ORDERING: Acquire; pairs with `report_quiet`.
        self.quiet.load(Ordering::Acquire) >= self.len()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // Shards and handles are gone. Usually the runtime has closed the pool; one that was dropped by a shard of its own
        // could not wait for it.
        self.blocking.close(Duration::ZERO);
    }
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team")
            .field("numbers", &self.numbers)
            .finish_non_exhaustive()
    }
}
