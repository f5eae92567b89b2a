//! One-shot slots: an answer is written on the asking shard, where the asker's future reads it.
//!
//! # Life of a slot
//! ```text
//!  open ──► Waiting ──fill──► Filled ──poll──► free
//!              │                 │
//!              ├── slot dropped ─┴───────────► free      (a later fill finds another generation and drops its value)
//!              └── due ──► Overdue ──poll────► free
//! ```
//! [`ReplySlot`] is the reading end and owns the slot; [`ReplyKey`] is the writing end and owns nothing but the right to
//! fill it once. A key may be used on any thread: on the slot's own shard it writes directly, on a peer it posts a
//! record, elsewhere it submits a job. A slot polled away from its shard moves its wait there: a small task on the
//! slot's shard waits in its place and passes the value on.
//!
//! A slot may be *due* at some time ([`due`]). The shard looks for overdue slots when the first of them is due, and at
//! most every 64 ms; nothing is done for a slot that is filled in time.

#![expect(
    unsafe_code,
    reason = "fills and reads slots by the type their generation proves"
)]

mod due;
mod key;
mod note;
mod table;

pub use self::due::{Due, usual_limit};
pub use self::note::{AskId, AskNote};

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_channel::oneshot;

use self::due::Noted;
use self::key::Key;
use self::note::Home;
use self::table::ON_THE_STACK;
pub(crate) use self::table::Replies;
use super::record::Record;
use crate::shard::{Shard, ShardId, ShardNumber, context, registry};
use crate::task::{Origin, contain, woken_task};

/// Why a slot has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The slot's shard has shut down.
    Gone,
    /// The value did not come before it was due.
    Overdue,
}

/// The reading end: resolves to the value, or to the reason why there is none.
///
/// # Cancel safety
/// Dropping it gives the slot up: the value, if it still comes, is dropped.
pub struct ReplySlot<T> {
    place: Place,
    value: PhantomData<T>,
    /// Set once the slot was polled away from its shard.
    courier: Option<oneshot::Receiver<Result<T, Unanswered>>>,
}

/// The writing end: may be used once, on any thread if `T` is `Send`. 16 bytes.
pub struct ReplyKey<T> {
    way: Key<T>,
}

const _: () = assert!(size_of::<Option<ReplyKey<u64>>>() == 16);

/// Invariant: made by [`open`] for one type `T` with a generation nobody else ever gets (see [`super::resident`]), so an
/// entry with that generation holds a `T`.
#[derive(Clone, Copy, Debug)]
struct Place {
    generation: u64,
    slot: u32,
    shard: ShardNumber,
}

/// The reading end of an answer to a thread that is no shard: resolves to an error if the key was dropped unused.
pub type OutsideReply<T> = oneshot::Receiver<T>;

/// Opens an answer for a caller on any thread, who keeps time itself. Costs one allocation, which a slot does not.
pub fn open_outside<T: 'static>(due: Due) -> (OutsideReply<T>, ReplyKey<T>) {
    let (sender, receiver) = oneshot::channel::<T>();
    (
        receiver,
        ReplyKey {
            way: Key::outside(due.noted, sender),
        },
    )
}

/// Opens a slot on the calling shard; `None` on a thread that is no shard.
#[inline]
#[must_use]
pub fn open<T: 'static>(due: Due) -> Option<(ReplySlot<T>, ReplyKey<T>)> {
    context::with(|shard| {
        let generation = shard.next_generation();
        let (slot, is_sooner) = {
            let mut replies = shard.replies().borrow_mut();
            let slot = replies.insert(generation, due.tick);
            (slot, replies.is_due_sooner(due.tick))
        };
        if is_sooner {
            shard.look_for_overdue_at(due.tick);
        }
        let place = Place {
            generation,
            slot,
            shard: shard.number(),
        };
        let way = Key::slot(Home::new(place.shard, due.noted), slot, generation);
        (
            ReplySlot {
                place,
                value: PhantomData,
                courier: None,
            },
            ReplyKey { way },
        )
    })
}

impl<T: 'static> ReplyKey<T> {
    /// The key of an answer that is awaited on the stack: see [`super::at_once`].
    #[inline]
    pub(crate) fn at_once(shard: ShardNumber, generation: u64) -> Self {
        Self {
            way: Key::slot(Home::new(shard, Noted::default()), ON_THE_STACK, generation),
        }
    }

    /// A key that leads to nobody.
    #[must_use]
    #[inline]
    pub fn nowhere() -> Self {
        Self {
            way: Key::nowhere(),
        }
    }

    /// Whether the key leads to nobody: made so, or taken.
    #[must_use]
    #[inline]
    pub fn is_nowhere(&self) -> bool {
        self.way.is_nowhere()
    }

    /// Takes the key, and leaves one that leads to nobody.
    #[inline]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::nowhere())
    }

    /// What the key says of its ask.
    #[must_use]
    #[inline]
    pub fn note(&self) -> AskNote {
        match self.way.place() {
            Some(place) => AskNote::new(place.generation, self.way.home()),
            None => AskNote::outside(self.way.home()),
        }
    }

    /// Whether the asker still waits, as far as this thread can tell: of a slot on another shard it cannot.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        let Some(place) = self.way.place() else {
            return self.way.is_wanted_outside();
        };
        let known = context::with(|shard| {
            (shard.number() == place.shard).then(|| {
                if place.slot == ON_THE_STACK {
                    shard.frames().is_open(place.generation)
                } else {
                    shard.replies().borrow().is_open(place)
                }
            })
        });
        known.flatten().unwrap_or(true)
    }

    /// Fills the slot. A value whose asker is gone is dropped.
    ///
    /// # Shard affinity
    /// Any thread. A key that is not `Send` cannot have left the slot's shard.
    #[inline]
    pub fn send(self, value: T) {
        match self.way.place() {
            // Written where the asker reads it, with no call in between that the value would be moved for.
            Some(place) if place.slot == ON_THE_STACK && is_here(place) => {
                let unwanted = context::with(move |shard| {
                    // SAFETY: by the invariant of `Place` the generation was taken for `T`.
                    unsafe { shard.frames().fill(place.generation, value) }
                });
                drop(unwanted);
            }
            _ => self.send_to_slot(value),
        }
    }

    #[inline(never)]
    fn send_to_slot(self, value: T) {
        let Some(place) = self.way.place() else {
            return self.send_outside(value);
        };
        if is_here(place) {
            context::with(move |shard| {
                // SAFETY: by the invariant of `Place` the entry holds a `T`.
                unsafe { fill(shard, place, value) };
            });
            return;
        }
        send_away(Answer {
            place,
            value: AssertSend(value),
        });
    }

    #[cold]
    fn send_outside(self, value: T) {
        if let Some(sender) = self.way.into_sender() {
            // Wakes the asker, whose waker is anybody's and no affair of whoever answers. If it is gone nobody wants the value.
            contain(|| drop(sender.send(value)));
        }
    }
}

/// Whether the calling thread runs the shard of a place.
#[inline]
fn is_here(place: Place) -> bool {
    context::with(|shard| shard.number() == place.shard) == Some(true)
}

/// Sends an answer from a thread other than the slot's own.
fn send_away<T: 'static>(answer: Answer<T>) {
    let peer = context::with(|shard| shard.team().place(answer.place.shard)).flatten();
    if let Some(peer) = peer {
        context::with(|shard| shard.post_record(peer, answer));
        return;
    }
    if let Some(shared) = registry::shared(answer.place.shard) {
        let job = Box::new(move || {
            context::with(|shard| answer.fill(shard));
        });
        // A shard that is gone took the asker with it: the value is dropped here.
        drop(shared.submit(job));
    }
}

/// A value that left the thread it was made on only because its type is `Send`.
struct AssertSend<T>(T);

// SAFETY: made in two places. `ReplyKey::send`, past its own-shard path, runs on a thread other than the slot's own: the key, which was made
// there, got here only because `ReplyKey<T>: Send`, which requires `T: Send`. `ReplySlot::poll_away` likewise, through
// `ReplySlot<T>: Send`.
unsafe impl<T> Send for AssertSend<T> {}

impl<T> AssertSend<T> {
    /// By a method, so that a closure captures the wrapper and not what is in it.
    fn into_inner(self) -> T {
        self.0
    }
}

struct Answer<T> {
    place: Place,
    value: AssertSend<T>,
}

impl<T: 'static> Answer<T> {
    #[inline]
    fn fill(self, shard: &Shard) {
        // SAFETY: by the invariant of `Place` the entry holds a `T`.
        unsafe { fill(shard, self.place, self.value.into_inner()) };
    }
}

impl<T: 'static> Record for Answer<T> {
    #[inline]
    fn arrive(self, shard: &Shard, _: ShardId) {
        self.fill(shard);
    }
}

impl<T: 'static> ReplySlot<T> {
    /// Which ask this is the slot of.
    #[must_use]
    pub fn ask(&self) -> AskId {
        AskId::new(self.place.generation, self.place.shard)
    }

    /// Whether a value is there, on the slot's own shard.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        context::with(|shard| {
            shard.number() == self.place.shard && shard.replies().borrow().is_filled(self.place)
        }) == Some(true)
    }

    #[inline]
    fn poll_here(&self, shard: &Shard, cx: &Context<'_>) -> Poll<Result<T, Unanswered>> {
        if shard.budget().is_spent() {
            shard.give_way(cx.waker());
            return Poll::Pending;
        }
        // SAFETY: by the invariant of `Place` the entry holds a `T`.
        let polled = unsafe { shard.replies().borrow_mut().poll(self.place, cx.waker()) };
        if polled.is_ready() {
            shard.budget().spend();
        }
        polled
    }

    fn poll_away(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Unanswered>> {
        let place = self.place;
        let receiver = self.courier.get_or_insert_with(|| {
            let (sender, receiver) = oneshot::channel();
            let waiting = AssertSend((
                ReplySlot {
                    place,
                    value: PhantomData,
                    courier: None,
                },
                sender,
            ));
            let job = Box::new(move || {
                let (mut slot, mut sender): (Self, oneshot::Sender<Result<T, Unanswered>>) =
                    waiting.into_inner();
                let courier = async move {
                    let waited = std::future::poll_fn(|cx| match sender.poll_canceled(cx) {
                        // The other end is gone: nobody wants the value.
                        Poll::Ready(()) => Poll::Ready(None),
                        Poll::Pending => Pin::new(&mut slot).poll(cx).map(Some),
                    });
                    if let Some(value) = waited.await {
                        // Gone just now, perhaps.
                        drop(sender.send(value));
                    }
                };
                context::with(|shard| shard.spawn(Origin::here(), courier).detach());
            });
            if let Some(shared) = registry::shared(place.shard) {
                // A shard that is gone drops the job, and with it the sender, which resolves the receiver.
                drop(shared.submit(job));
            }
            receiver
        });
        let received = Pin::new(receiver).poll(cx);
        received.map(|received| received.unwrap_or(Err(Unanswered::Gone)))
    }
}

impl<T: 'static> Future for ReplySlot<T> {
    type Output = Result<T, Unanswered>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.courier.is_none() {
            let here = context::with(|shard| {
                (shard.number() == self.place.shard).then(|| self.poll_here(shard, cx))
            });
            if let Some(polled) = here.flatten() {
                return polled;
            }
        }
        self.poll_away(cx)
    }
}

impl<T> Unpin for ReplySlot<T> {}

impl<T> Drop for ReplySlot<T> {
    #[inline]
    fn drop(&mut self) {
        if self.courier.is_some() {
            // The slot is the courier's now, and dropping the receiver ends the courier.
            return;
        }
        let place = self.place;
        let here = context::with(|shard| {
            let own = shard.number() == place.shard;
            if own {
                give_up(shard, place);
            }
            own
        });
        if here != Some(true)
            && let Some(shared) = registry::shared(place.shard)
        {
            // A shard that is gone has no slots left to give up.
            drop(shared.submit(Box::new(move || {
                context::with(|shard| give_up(shard, place));
            })));
        }
    }
}

impl<T> fmt::Debug for ReplySlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReplySlot").field(&self.place).finish()
    }
}

impl<T> fmt::Debug for ReplyKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyKey").finish_non_exhaustive()
    }
}

/// # Safety
/// * `place` was opened for `T`.
#[inline]
unsafe fn fill<T: 'static>(shard: &Shard, place: Place, value: T) {
    if place.slot == ON_THE_STACK {
        // SAFETY: by our contract.
        let unwanted = unsafe { shard.frames().fill(place.generation, value) };
        return drop(unwanted);
    }
    let mut value = Some(value);
    // SAFETY: by our contract.
    let waker = unsafe { shard.replies().borrow_mut().fill(place, &mut value) };
    // Waking and dropping may run user code: the table is no longer borrowed.
    if let Some(waker) = waker {
        if woken_task(&waker).is_some() {
            waker.wake();
        } else {
            wake_stranger(shard, waker);
        }
    }
    drop(value);
}

/// Wakes with a waker that is anybody's: a panic in it is no affair of whoever answers.
#[inline(never)]
fn wake_stranger(shard: &Shard, waker: Waker) {
    shard.contain(|| waker.wake());
}

#[inline]
fn give_up(shard: &Shard, place: Place) {
    let left = shard.replies().borrow_mut().remove(place);
    drop(left);
}
