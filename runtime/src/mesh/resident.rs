//! Values that live on a shard and take messages from anywhere.
//!
//! # Life of a resident
//! [`settle`] puts it into the shard's table and returns its [`ResidentId`], which is `Copy`, names it from any
//! thread, and keeps nothing alive. [`evict`] takes it out: from then on every message to it is undeliverable.
//! The value itself is dropped at the end of the turn in which it was evicted, on its own shard.
//!
//! # Why an id is proof of a type
//! Generations come from one 64-bit counter per shard number, which goes on from runtime to runtime and cannot wrap in
//! practice (a billion a second for five hundred years). An id with generation `g` is made once, by `settle::<R>`, so a
//! table entry with generation `g` holds an `R`.

#![expect(
    unsafe_code,
    reason = "reads table entries back as the type their id proves"
)]

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::lane::Lane;
use super::link::{Admission, Choke, Pause, Refusal, Target};
use super::record::Record;
use crate::shard::{Shard, ShardId, ShardNumber, context, registry};

/// A value on a shard that takes messages.
pub trait Resident: 'static {
    /// What it takes. Messages may come from other shards.
    type Message: Send + 'static;

    /// Takes a message on the resident's own shard. Nothing of the shard is borrowed: it may drop values of users. A panic is
    /// contained and counted.
    ///
    /// It cannot refuse: a resident that wants a pause calls [`Origin::choke`].
    fn deliver(&self, message: Self::Message, origin: Origin);

    /// Disposes of a message whose resident is gone, on the shard it was meant for.
    fn undeliverable(message: Self::Message);

    /// As [`Resident::undeliverable`], of a message that arrived and may go back with [`Origin::send_back`].
    fn refuse(message: Self::Message, origin: Origin) {
        let _ = origin;
        Self::undeliverable(message);
    }

    /// Disposes of a message that came back, on the shard that had sent it.
    fn returned(message: Self::Message) {
        drop(message);
    }
}

/// Where a message came from, as far as flow control is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Another shard of the same runtime.
    Peer(ShardId),
    /// A thread that is no shard of this runtime, or the shard itself.
    Direct,
}

impl Origin {
    /// Whether the resident may do its work right where it takes a message, instead of in a task of its own.
    ///
    /// It may so for 1024 messages of peers in a turn, as long as the turn has time left; work done this way is to be
    /// short. Never for messages that came in another way.
    #[must_use]
    #[inline]
    pub fn may_work_now(self) -> bool {
        matches!(self, Self::Peer(_)) && context::with(Shard::may_work_on_arrival) == Some(true)
    }

    /// Asks the sending shard to hold further messages of a lane back until [`Origin::unchoke`].
    pub fn choke<R: Resident>(self, resident: ResidentId<R>, lane: Lane) {
        self.post(resident, lane, Pause::Begin);
    }

    /// Lets the sending shard go on.
    pub fn unchoke<R: Resident>(self, resident: ResidentId<R>, lane: Lane) {
        self.post(resident, lane, Pause::End);
    }

    /// Tells the sending shard's waiting senders of a choked lane that the resident is gone.
    pub fn dismiss<R: Resident>(self, resident: ResidentId<R>, lane: Lane) {
        self.post(resident, lane, Pause::Gone);
    }

    /// Asks the sending shard to hold back what belongs to a lane of a flow, until [`Origin::unchoke_flow`].
    pub fn choke_flow(self, flow: Flow, lane: Lane) {
        self.post_pause((flow.0, lane), Pause::Begin);
    }

    /// Lets the sending shard go on with a lane of a flow.
    pub fn unchoke_flow(self, flow: Flow, lane: Lane) {
        self.post_pause((flow.0, lane), Pause::End);
    }

    fn post<R: Resident>(self, resident: ResidentId<R>, lane: Lane, pause: Pause) {
        self.post_pause((resident.generation, lane), pause);
    }

    fn post_pause(self, target: Target, pause: Pause) {
        if let Self::Peer(peer) = self {
            context::with(|shard| {
                shard.post_record(peer, Choke { target, pause });
            });
        }
    }
}

/// Messages to one resident that are held back together, and apart from its other messages.
///
/// For a resident that passes messages on to several receivers: when one of them wants a pause, the others' messages go on.
/// Two flows of the same number are one: they are held back for each other, and nothing else follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow(u64);

impl Flow {
    /// The flow of a hash.
    #[must_use]
    pub fn of_hash(hash: u64) -> Self {
        // Residents are flows of their generations, which never come so far.
        Self(hash | 1 << 63)
    }
}

/// The name of a resident: 16 bytes, `Copy`, valid on every thread and for ever.
pub struct ResidentId<R: ?Sized> {
    generation: u64,
    slot: u32,
    shard: ShardNumber,
    resident: PhantomData<fn() -> Box<R>>,
}

impl<R: ?Sized> Clone for ResidentId<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: ?Sized> Copy for ResidentId<R> {}

impl<R: ?Sized> PartialEq for ResidentId<R> {
    fn eq(&self, other: &Self) -> bool {
        self.generation == other.generation && self.shard == other.shard
    }
}

impl<R: ?Sized> Eq for ResidentId<R> {}

impl<R: ?Sized> std::hash::Hash for ResidentId<R> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.generation, self.shard).hash(state);
    }
}

impl<R: ?Sized> fmt::Debug for ResidentId<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.shard.index(), self.generation)
    }
}

/// How a message gets from the calling thread to a resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The resident lives on the calling shard.
    Here,
    /// It lives on another shard of the same runtime.
    Peer(ShardId),
    /// The calling thread is no shard of the resident's runtime.
    Outside,
}

impl<R: ?Sized> ResidentId<R> {
    /// How to reach the resident from the calling thread.
    #[must_use]
    #[inline]
    pub fn route(self) -> Route {
        context::with(|shard| {
            if shard.number() == self.shard {
                Route::Here
            } else {
                shard
                    .team()
                    .place(self.shard)
                    .map_or(Route::Outside, Route::Peer)
            }
        })
        .unwrap_or(Route::Outside)
    }

    /// The shard, as other threads see it. `None` if it is gone, also if another runtime's shard has its number now: that one
    /// may be busy for long, and has nothing to do with this.
    pub(super) fn shared(self) -> Option<&'static registry::SharedShard> {
        registry::shared(self.shard).filter(|shared| !shared.is_inherited(self.generation))
    }

    /// The process-wide number of the resident's shard and its generation there, which together are unique.
    #[must_use]
    pub fn number(self) -> (u16, u64) {
        (self.shard.index(), self.generation)
    }
}

impl<R: Resident> ResidentId<R> {
    /// Calls `f` with the resident if it lives on the calling shard and is still there.
    ///
    /// # Shard affinity
    /// `None` on every other thread.
    #[inline]
    pub fn visit<T>(self, f: impl FnOnce(&R) -> T) -> Option<T> {
        self.visit_with((), |resident, ()| f(resident)).ok()
    }

    /// As [`ResidentId::visit`], with something that `f` takes, or that comes back if `f` is not called.
    ///
    /// # Errors
    /// What was to be taken, when the resident is not on the calling shard.
    #[inline]
    pub fn visit_with<S, T>(self, taken: S, f: impl FnOnce(&R, S) -> T) -> Result<T, S> {
        let Some(pointer) = context::with(|shard| self.find(shard)).flatten() else {
            return Err(taken);
        };
        // SAFETY:
        // * the entry's generation is the id's, so the pointer came from an `Rc<R>` (module docs);
        // * an evicted resident is dropped by the loop at the end of the turn, and the loop is below us on the stack,
        //   so it stays alive while `f` runs.
        let resident = unsafe { pointer.cast::<R>().as_ref() };
        Ok(f(resident, taken))
    }

    #[inline]
    fn find(self, shard: &Shard) -> Option<NonNull<()>> {
        if shard.number() != self.shard {
            return None;
        }
        shard.residents().borrow().find(self.slot, self.generation)
    }

    /// Sends from another shard of the same runtime if the message can be accepted now. `build` runs only then.
    ///
    /// # Errors
    /// [`Refusal::Full`] when it would have to wait; [`Refusal::Gone`] when the calling thread is no peer of the
    /// resident's shard. A resident that has ended is found out on arrival only.
    #[inline]
    pub fn try_send(self, lane: Lane, build: impl FnOnce() -> R::Message) -> Result<(), Refusal> {
        self.try_send_in(Flow(self.generation), lane, build)
    }

    /// As [`ResidentId::try_send`], as a part of a flow.
    ///
    /// # Errors
    /// As [`ResidentId::try_send`]; also full while the lane of the flow is choked.
    #[inline]
    pub fn try_send_in(
        self,
        flow: Flow,
        lane: Lane,
        build: impl FnOnce() -> R::Message,
    ) -> Result<(), Refusal> {
        context::with(|shard| {
            let peer = shard.team().place(self.shard);
            let Some(peer) = peer.filter(|&peer| peer != shard.id()) else {
                return Err(Refusal::Gone);
            };
            let record = || Delivery {
                id: self,
                message: build(),
            };
            if shard.try_send_record(peer, (flow.0, lane), record) {
                Ok(())
            } else {
                Err(Refusal::Full)
            }
        })
        .unwrap_or(Err(Refusal::Gone))
    }

    /// As [`ResidentId::try_send`] for one message after the other, while `prepare`, which may run anyone's code, says
    /// that there is one; `build` runs for each that is accepted.
    ///
    /// # Errors
    /// As [`ResidentId::try_send`]; the message that was got ready then has not been built.
    pub fn try_send_run<S>(
        self,
        lane: Lane,
        run: &mut S,
        prepare: impl Fn(&mut S) -> bool,
        build: impl Fn(&mut S) -> R::Message,
    ) -> Result<(), Refusal> {
        context::with(|shard| {
            let Some(peer) = shard.team().place(self.shard) else {
                return Err(Refusal::Gone);
            };
            while prepare(run) {
                let record = || Delivery {
                    id: self,
                    message: build(run),
                };
                if !shard.try_send_record(peer, (self.generation, lane), record) {
                    return Err(Refusal::Full);
                }
            }
            Ok(())
        })
        .unwrap_or(Err(Refusal::Gone))
    }

    /// Like [`ResidentId::try_send`], but waits its turn. The places held meanwhile are in `admission`, which must be
    /// given to [`leave`] if the send is given up.
    pub fn poll_send(
        self,
        lane: Lane,
        admission: &mut Admission,
        cx: &Context<'_>,
        build: impl FnOnce() -> R::Message,
    ) -> Poll<Result<(), Refusal>> {
        self.poll_send_in(Flow(self.generation), lane, admission, cx, build)
    }

    /// As [`ResidentId::poll_send`], as a part of a flow: the same one at every poll.
    pub fn poll_send_in(
        self,
        flow: Flow,
        lane: Lane,
        admission: &mut Admission,
        cx: &Context<'_>,
        build: impl FnOnce() -> R::Message,
    ) -> Poll<Result<(), Refusal>> {
        context::with(|shard| {
            let Some(peer) = shard.team().place(self.shard) else {
                return Poll::Ready(Err(Refusal::Gone));
            };
            let record = || Delivery {
                id: self,
                message: build(),
            };
            shard
                .poll_send_record(peer, (flow.0, lane), admission, cx, record)
                .map(Ok)
        })
        .unwrap_or(Poll::Ready(Err(Refusal::Gone)))
    }

    /// Whether the calling shard holds messages of this lane back because the resident, on another shard, asked for it.
    #[must_use]
    pub fn is_choked(self, lane: Lane) -> bool {
        self.is_choked_in(Flow(self.generation), lane)
    }

    /// As [`ResidentId::is_choked`], for a flow.
    #[must_use]
    pub fn is_choked_in(self, flow: Flow, lane: Lane) -> bool {
        context::with(|shard| {
            let peer = shard.team().place(self.shard)?;
            Some(shard.is_choked(peer, (flow.0, lane)))
        })
        .flatten()
            == Some(true)
    }

    /// Sends a message that must not wait, from any thread. It keeps its place behind what the calling shard has sent
    /// before.
    ///
    /// # Errors
    /// Gives the message back when the resident's shard is gone.
    pub fn post(self, message: R::Message) -> Result<(), R::Message> {
        match self.route() {
            Route::Here => {
                arrive(self, message, Origin::Direct);
                Ok(())
            }
            Route::Peer(peer) => {
                context::with(|shard| shard.post_record(peer, Delivery { id: self, message }));
                Ok(())
            }
            Route::Outside => self.post_outside(message),
        }
    }

    fn post_outside(self, message: R::Message) -> Result<(), R::Message> {
        // The message is in a cell so that a closed queue, which gives the job back, gives the message back too.
        let cell = std::sync::Arc::new(std::sync::Mutex::new(Some(message)));
        let take = |cell: &std::sync::Mutex<Option<R::Message>>| {
            cell.lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .take()
        };
        let theirs = cell.clone();
        let submitted = self.shared().is_some_and(|shared| {
            let job = move || {
                if let Some(message) = take(&theirs) {
                    arrive(self, message, Origin::Direct);
                }
            };
            shared.submit(Box::new(job)).is_ok()
        });
        if submitted {
            Ok(())
        } else {
            take(&cell).map_or(Ok(()), Err)
        }
    }

    /// Whether the calling shard only has the number of the resident's shard, which ended with an earlier runtime.
    #[must_use]
    pub fn is_of_the_past(self) -> bool {
        context::with(|shard| shard.number() == self.shard && shard.is_inherited(self.generation))
            == Some(true)
    }

    /// The resident's place in the calling shard's runtime; `None` elsewhere.
    #[must_use]
    pub fn place(self) -> Option<ShardId> {
        context::with(|shard| shard.team().place(self.shard)).flatten()
    }
}

/// Gives up the places of a send that was dropped while it waited, from any thread.
#[inline]
pub fn leave(admission: &mut Admission) {
    if admission.is_waiting() {
        leave_waiting(std::mem::take(admission));
    }
}

#[cold]
fn leave_waiting(mut held: Admission) {
    let Some(number) = held.shard() else {
        return;
    };
    let here = context::with(|shard| {
        let own = shard.number() == number;
        if own {
            shard.leave_places(&mut held);
        }
        own
    });
    if here != Some(true)
        && let Some(shared) = registry::shared(number)
    {
        // A shard that is gone has no places left.
        drop(shared.submit(Box::new(move || {
            context::with(|shard| shard.leave_places(&mut held));
        })));
    }
}

/// Puts a value into the calling shard's table.
///
/// # Panics
/// If the calling thread is no shard.
#[track_caller]
pub fn settle<R: Resident>(resident: Rc<R>) -> ResidentId<R> {
    context::with(|shard| {
        let generation = shard.next_generation();
        let slot = shard.residents().borrow_mut().insert(generation, resident);
        ResidentId {
            generation,
            slot,
            shard: shard.number(),
            resident: PhantomData,
        }
    })
    .unwrap_or_else(|| panic!("residents settle on shards: this thread is none"))
}

/// Takes a value out of the calling shard's table. Does nothing if it is not there.
pub fn evict<R: Resident>(id: ResidentId<R>) {
    context::with(|shard| {
        if shard.number() == id.shard {
            let evicted = shard
                .residents()
                .borrow_mut()
                .remove(id.slot, id.generation);
            if let Some(evicted) = evicted {
                shard.bury(evicted);
            }
        }
    });
}

/// A message on its way to a resident of another shard.
struct Delivery<R: Resident> {
    id: ResidentId<R>,
    message: R::Message,
}

impl<R: Resident> Record for Delivery<R> {
    #[inline]
    fn arrive(self, shard: &Shard, from: ShardId) {
        let Some(pointer) = self.id.find(shard) else {
            return R::refuse(self.message, Origin::Peer(from));
        };
        // SAFETY:
        // * the entry's generation is the id's, so the pointer came from an `Rc<R>` (module docs);
        // * an evicted resident is dropped by the loop at the end of the turn, and records arrive in the middle of one, so it
        //   stays alive while it takes the message.
        let resident = unsafe { pointer.cast::<R>().as_ref() };
        resident.deliver(self.message, Origin::Peer(from));
    }
}

fn arrive<R: Resident>(id: ResidentId<R>, message: R::Message, origin: Origin) {
    let mut message = Some(message);
    id.visit(|resident| {
        if let Some(message) = message.take() {
            resident.deliver(message, origin);
        }
    });
    if let Some(message) = message {
        R::refuse(message, origin);
    }
}

/// The table of a shard's residents.
#[derive(Debug, Default)]
pub(crate) struct Residents {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry {
    /// Zero while the entry is free.
    generation: u64,
    /// Invariant: `value` points into `owner`.
    owner: Option<Rc<dyn Any>>,
    value: NonNull<()>,
}

impl Residents {
    fn insert<R: Resident>(&mut self, generation: u64, resident: Rc<R>) -> u32 {
        let value = NonNull::from(&*resident).cast::<()>();
        let entry = Entry {
            generation,
            owner: Some(resident),
            value,
        };
        if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = entry;
            return slot;
        }
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).expect("fewer residents than bytes of memory")
    }

    #[inline]
    fn find(&self, slot: u32, generation: u64) -> Option<NonNull<()>> {
        let entry = self.entries.get(slot as usize)?;
        (entry.generation == generation).then_some(entry.value)
    }

    fn remove(&mut self, slot: u32, generation: u64) -> Option<Rc<dyn Any>> {
        let entry = self
            .entries
            .get_mut(slot as usize)
            .filter(|entry| entry.generation == generation)?;
        entry.generation = 0;
        self.free.push(slot);
        entry.owner.take()
    }

    /// Takes every value out, for teardown.
    pub(crate) fn drain(&mut self) -> Vec<Rc<dyn Any>> {
        self.free.clear();
        self.entries
            .drain(..)
            .filter_map(|entry| entry.owner)
            .collect()
    }
}
