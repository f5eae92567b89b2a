//! What the shards of one runtime have in common.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::ring::RingShared;
use crate::blocking::pool::Pool;
use crate::float::board::Board;
use crate::observe::pulse::Pulse;
use crate::shard::registry::{self, SharedShard};
use crate::shard::{SHARD_NUMBER_COUNT, ShardId, ShardNumber};
use crate::shutdown::Phase;
use crate::shutdown::stop::{Payload, Stop};

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
    stop: Stop,
    /// What layers above keep once for the whole runtime. Looked at when they begin something, not at every message.
    extensions: Mutex<Vec<(TypeId, Extension)>>,
}

type Extension = Arc<dyn Any + Send + Sync>;

impl Team {
    pub(crate) fn new(
        numbers: Box<[ShardNumber]>,
        link_bytes: usize,
        blocking: Pool,
        board: Board,
        pulses: Box<[Arc<Pulse>]>,
        stop: Stop,
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
            stop,
            extensions: Mutex::default(),
        }
    }

    /// The one value of a type; of two that are made at the same time the first one stays.
    pub(crate) fn extension<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(found) = self.find_extension(|| None) {
            return found;
        }
        // Made with no lock held: it is the caller's code.
        let made = Arc::new(make());
        self.find_extension(|| Some(made.clone())).unwrap_or(made)
    }

    fn find_extension<T: Send + Sync + 'static>(
        &self,
        absent: impl FnOnce() -> Option<Arc<T>>,
    ) -> Option<Arc<T>> {
        let mut extensions = self
            .extensions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = extensions.iter().find(|(id, _)| *id == TypeId::of::<T>());
        if let Some((_, found)) = known {
            return found.clone().downcast::<T>().ok();
        }
        let made = absent()?;
        extensions.push((TypeId::of::<T>(), made.clone()));
        Some(made)
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// All shards, in order.
    pub(crate) fn shards(&self) -> impl ExactSizeIterator<Item = ShardId> + use<> {
        (0..self.len()).map(ShardId::at)
    }

    /// The place of a shard in this runtime; `None` for a shard of another one.
    #[inline]
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

    /// How far the end has come.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Lets the tasks of all shards finish, until the grace is over.
    pub(crate) fn drain(&self, grace: Duration) {
        self.stop.drain(grace);
        self.notify_all();
    }

    /// Asks every shard to stop; with a payload if one of them failed. The first failure is kept.
    pub(crate) fn cancel(&self, failure: Option<Payload>) {
        self.stop.cancel(failure);
        self.notify_all();
    }

    /// A shard of this team has come to another phase of its end.
    pub(crate) fn enter(&self, shard: ShardId, phase: Phase) {
        self.stop.enter(shard, phase);
        if phase >= Phase::Waiting {
            // Its peers may be waiting for just that.
            self.notify_all();
        }
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
