//! Handles: what names an actor, and the way a call takes to it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::task::{Context, Poll};

use futures_channel::oneshot;
use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::{self, AskId, Lane, Refusal, ResidentId, Route};

use crate::actor::{Actor, Overflow};
use crate::cycle::Forward;
use crate::error::CallSite;
use crate::mailbox::{FromOutside, Mailbox, Parcel};
use crate::outside::Outside;
use crate::place::Place;
use crate::reply::{Answer, Reply};
use crate::way::Way;

/// The name of an actor: 16 bytes, `Copy`, `Send`, `Sync`, good on every thread.
///
/// It dereferences to the actor's calls, so `addr.add(5)` is a message. It keeps nothing alive: an address of an actor
/// that has ended stays valid, and calls through it say so.
///
/// It has no methods of its own that could hide a message; what can be done with an address is written
/// `Addr::stop(addr)`.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// struct Counter { n: u64 }
///
/// #[actor]
/// impl Counter {
///     pub fn add(&mut self, by: u64) -> u64 { self.n += by; self.n }
/// }
///
/// let system = System::start(2)?;
/// let counter: Addr<Counter> = system.block_on(system.spawn_on(1, || Counter { n: 0 }))?;
/// assert_eq!(system.block_on(counter.add(5))?, 5);
/// # Ok::<(), greenroom::Error>(())
/// ```
pub struct Addr<A: Actor, P: Port<Actor = A> = Remote<A>> {
    client: A::Client<P>,
    /// The last field of a type decides whether its size is known. Of this one it always is, so that an address of what is
    /// no actor is that one mistake, and not a type without a size besides.
    _sized: (),
}

/// A handle for the actor's own shard: `!Send`, and takes `#[message(local)]` calls too.
///
/// Got from [`Addr::local`] or [`crate::Ctx::local`].
pub type Local<A> = Addr<A, Here<A>>;

impl<A: Actor, P: Port<Actor = A>> Addr<A, P> {
    pub(crate) fn from_port(port: P) -> Self {
        Self {
            client: A::Client::from_port(port),
            _sized: (),
        }
    }
}

impl<A: Actor, P: Direct<Actor = A>> Addr<A, P> {
    pub(crate) fn id(&self) -> ResidentId<Mailbox<A>> {
        self.client.port().id()
    }

    /// The shard the actor lives on, if the calling thread is a shard of the same system.
    #[must_use]
    pub fn shard(this: Self) -> Option<ShardId> {
        this.id().place()
    }

    /// The same actor by a handle that can be sent.
    #[must_use]
    pub fn to_remote(this: Self) -> Addr<A> {
        Addr::from_port(Remote { id: this.id() })
    }
}

impl<A: Actor> Addr<A> {
    /// The handle for the actor's own shard; `None` on any other thread, and when the actor has ended.
    #[must_use]
    pub fn local(this: Self) -> Option<Local<A>> {
        let id = this.id();
        id.visit(|_| ())?;
        Some(Addr::from_port(Here {
            id,
            stays: PhantomData,
        }))
    }
}

impl<A: Actor, P: Port<Actor = A>> Deref for Addr<A, P> {
    type Target = A::Client<P>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.client
    }
}

impl<A: Actor, P: Port<Actor = A>> Clone for Addr<A, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Actor, P: Port<Actor = A>> Copy for Addr<A, P> {}

impl<A: Actor, P: Direct<Actor = A>> PartialEq for Addr<A, P> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl<A: Actor, P: Direct<Actor = A>> Eq for Addr<A, P> {}

impl<A: Actor, P: Direct<Actor = A>> std::hash::Hash for Addr<A, P> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl<A: Actor, P: Direct<Actor = A>> fmt::Debug for Addr<A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?})", A::NAME, self.id())
    }
}

/// The way a message takes. Sealed: [`Remote`] and [`Here`] are those to one certain actor.
pub trait Port: Way {
    /// What errors say of a call on this way.
    #[doc(hidden)]
    fn site(self, method: &'static str) -> CallSite;

    #[doc(hidden)]
    fn into_local(env: Self::Env) -> <Self::Actor as Actor>::LocalMsg;

    /// Sends if the message is accepted now; `build` runs only then.
    #[doc(hidden)]
    fn try_send(self, lane: Lane, build: impl FnOnce() -> Self::Env) -> Result<(), Refused>;

    /// Asks an actor of the same shard that has nothing else to do, whose handler answers before it returns. `build` runs
    /// only then.
    #[doc(hidden)]
    fn ask_at_once<R: 'static>(
        self,
        lane: Lane,
        build: impl FnOnce(Reply<R>) -> Self::Env,
    ) -> Option<Answer<R>>;

    /// Sends when it is this sender's turn.
    #[doc(hidden)]
    fn poll_send(
        self,
        lane: Lane,
        place: &mut Place,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> Self::Env,
    ) -> Poll<Result<(), Refused>>;

    /// Sends from a thread that is no shard of the actor's system. The message waits for room on the actor's shard;
    /// the receiver, if one is given, hears when it is in the mailbox.
    #[doc(hidden)]
    fn send_outside(self, lane: Lane, env: Self::Env, sent: Outside) -> Result<(), Refused>;

    /// Gives up the place of a send that waits, from any thread.
    #[doc(hidden)]
    fn leave(self, place: &mut Place);

    /// Lets the actor know that nobody waits for an answer any more; see [`Mailbox::give_up`].
    #[doc(hidden)]
    fn give_up(self, ask: Option<AskId>);

    /// The way of a question to whoever is waited for, if it is on a shard of the same system.
    #[doc(hidden)]
    fn forward(self) -> Option<Forward> {
        None
    }

    /// Takes one of the places for messages of other threads that nobody waits for.
    #[doc(hidden)]
    fn enter_outside(self) -> Result<mesh::OutsidePass, Refused>;

    /// Runs a closure on the actor's shard; gives it back if the shard is gone.
    #[doc(hidden)]
    fn run_there(self, job: Job) -> Result<(), Job>;

    /// Runs a timer on the actor's shard for a caller that has none.
    #[doc(hidden)]
    fn timer_outside(self, limit: std::time::Duration) -> oneshot::Receiver<()> {
        // A shard that is gone drops the job: the receiver then reports an end, which the caller tells from a firing.
        crate::outside::timer(limit, |job| drop(self.run_there(job)))
    }
}

/// A piece of work for another shard.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A way to one certain mailbox. Sealed, as every [`Port`] is.
pub trait Direct: Port {
    #[doc(hidden)]
    fn id(self) -> ResidentId<Mailbox<Self::Actor>>;
}

impl<A: Actor> Direct for Remote<A> {
    #[inline]
    fn id(self) -> ResidentId<Mailbox<A>> {
        self.id
    }
}

impl<A: Actor> Direct for Here<A> {
    #[inline]
    fn id(self) -> ResidentId<Mailbox<A>> {
        self.id
    }
}

pub(crate) mod sealed {
    #[expect(unnameable_types, reason = "sealed on purpose")]
    pub trait Sealed {}
    impl<A: super::Actor> Sealed for super::Remote<A> {}
    impl<A: super::Actor> Sealed for super::Here<A> {}
    impl<A: super::Actor> Sealed for crate::errand::After<A> {}
    impl<A: super::Actor> Sealed for crate::errand::Every<A> {}
    impl<A: super::Actor> Sealed for crate::errand::Compose<A> {}
}

/// A way that does not leave the actor's own shard.
#[diagnostic::on_unimplemented(
    message = "this message can only be sent from the actor's own shard",
    label = "`#[message(local)]` needs a same-shard `Local<_>` handle",
    note = "`Addr::local(addr)` returns one when the actor lives on the current shard"
)]
pub trait SameShard<W = Self>: Way {
    /// The way itself, as `W`. The method of a local message is generic over `W`, so that on a way of another kind its call
    /// has no type: what is done with that call is no second error.
    #[doc(hidden)]
    fn itself(self) -> W;
}

impl<A: Actor> SameShard for Here<A> {
    #[inline]
    fn itself(self) -> Self {
        self
    }
}

/// A generated client, seen from the framework.
pub trait FromPort<P>: Copy {
    /// Makes the client of a port.
    fn from_port(port: P) -> Self;
    /// The port it was made of.
    fn port(&self) -> P;
}

/// Why a send was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It would have to wait.
    Full,
    /// The actor has stopped.
    Stopped,
    /// The calling thread is no shard of the actor's system: the message takes the long way.
    Outside,
}

/// The way of an [`Addr`]: from anywhere.
pub struct Remote<A: Actor> {
    id: ResidentId<Mailbox<A>>,
}

impl<A: Actor> Remote<A> {
    pub(crate) fn new(id: ResidentId<Mailbox<A>>) -> Self {
        Self { id }
    }
}

/// The way of a [`Local`]: on the actor's shard.
pub struct Here<A: Actor> {
    id: ResidentId<Mailbox<A>>,
    /// Keeps the handle on its thread.
    stays: PhantomData<*const StaysOnItsShard>,
}

/// Named by the compiler when a [`Local`] is to leave. [`Addr::to_remote`] is the same actor for any shard.
enum StaysOnItsShard {}

impl<A: Actor> Here<A> {
    pub(crate) fn new(id: ResidentId<Mailbox<A>>) -> Self {
        Self {
            id,
            stays: PhantomData,
        }
    }
}

impl<A: Actor> Clone for Remote<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Actor> Copy for Remote<A> {}

impl<A: Actor> Clone for Here<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Actor> Copy for Here<A> {}

impl<A: Actor> fmt::Debug for Remote<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.id).finish()
    }
}

impl<A: Actor> fmt::Debug for Here<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Here").field(&self.id).finish()
    }
}

impl<A: Actor> Remote<A> {
    /// Sends to an actor that was not found on this shard.
    #[inline]
    fn try_send_away(self, lane: Lane, build: impl FnOnce() -> A::Msg) -> Result<(), Refused> {
        match self.id.try_send(lane, || Parcel::of(lane, build())) {
            Ok(()) => Ok(()),
            Err(Refusal::Full) => Err(Refused::Full),
            Err(Refusal::Gone) => Err(self.why_not_away()),
        }
    }

    /// Why an actor is neither on this shard nor on a peer.
    #[cold]
    fn why_not_away(self) -> Refused {
        match self.id.route() {
            Route::Here | Route::Peer(_) => Refused::Stopped,
            Route::Outside => Refused::Outside,
        }
    }
}

/// Waits in the mailbox's line.
fn poll_here<A: Actor>(
    id: ResidentId<Mailbox<A>>,
    lane: Lane,
    place: &mut Place,
    cx: &mut Context<'_>,
    build: impl FnOnce() -> A::LocalMsg,
) -> Poll<Result<(), Refused>> {
    let mut ticket = place.in_mailbox(id);
    let sent = id
        .visit(|mailbox| mailbox.poll_push(lane, &mut ticket, cx, build))
        .unwrap_or(Poll::Ready(Err(Refused::Stopped)));
    *place = match ticket {
        Some(ticket) if sent.is_pending() => Place::Mailbox(lane, ticket),
        _ => Place::None,
    };
    sent
}

pub(crate) fn refused(refusal: Refusal) -> Refused {
    match refusal {
        Refusal::Full => Refused::Full,
        Refusal::Gone => Refused::Stopped,
    }
}

impl<A: Actor> Port for Remote<A> {
    #[cold]
    fn site(self, method: &'static str) -> CallSite {
        CallSite::of(self.id, method)
    }

    fn leave(self, place: &mut Place) {
        place.leave(self.id);
    }

    fn give_up(self, ask: Option<AskId>) {
        Mailbox::give_up(self.id, ask);
    }

    fn forward(self) -> Option<Forward> {
        Mailbox::forward(self.id)
    }

    fn enter_outside(self) -> Result<mesh::OutsidePass, Refused> {
        self.id.enter_outside().map_err(refused)
    }

    fn run_there(self, job: Job) -> Result<(), Job> {
        self.id.run_there(job)
    }

    #[inline]
    fn into_local(env: A::Msg) -> A::LocalMsg {
        env.into()
    }

    #[inline]
    fn try_send(self, lane: Lane, build: impl FnOnce() -> A::Msg) -> Result<(), Refused> {
        let here = self.id.visit_with(build, |mailbox, build| {
            mailbox.try_push(lane, || build().into())
        });
        match here {
            Ok(sent) => sent,
            Err(build) => self.try_send_away(lane, build),
        }
    }

    #[inline]
    fn ask_at_once<R: 'static>(
        self,
        lane: Lane,
        build: impl FnOnce(Reply<R>) -> A::Msg,
    ) -> Option<Answer<R>> {
        self.id
            .visit(|mailbox| mailbox.ask_at_once(lane, |reply| build(reply).into()))
            .flatten()
    }

    fn poll_send(
        self,
        lane: Lane,
        place: &mut Place,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> A::Msg,
    ) -> Poll<Result<(), Refused>> {
        // A send that moved to another thread while it waited gives up the line it stood in there.
        match self.id.route() {
            Route::Here => poll_here(self.id, lane, place, cx, || build().into()),
            Route::Peer(_) if A::OVERFLOW == Overflow::Reject && self.id.is_choked(lane) => {
                place.leave(self.id);
                Poll::Ready(Err(Refused::Full))
            }
            Route::Peer(_) => {
                let mut admission = place.in_link(self.id);
                let sent = self
                    .id
                    .poll_send(lane, &mut admission, cx, || Parcel::of(lane, build()));
                *place = if sent.is_pending() {
                    Place::Link(admission)
                } else {
                    Place::None
                };
                sent.map(|sent| sent.map_err(refused))
            }
            Route::Outside => {
                place.leave(self.id);
                Poll::Ready(Err(Refused::Outside))
            }
        }
    }

    fn send_outside(self, lane: Lane, env: A::Msg, sent: Outside) -> Result<(), Refused> {
        let arrival = FromOutside::new(self.id, lane, env, sent);
        // A shard that is gone gives the job back; dropping it tells the asker through its reply.
        let arrived = self.id.run_there(Box::new(move || arrival.arrive()));
        arrived.map_err(|_| Refused::Stopped)
    }
}

impl<A: Actor> Port for Here<A> {
    #[cold]
    fn site(self, method: &'static str) -> CallSite {
        CallSite::of(self.id, method)
    }

    fn leave(self, place: &mut Place) {
        place.leave(self.id);
    }

    fn give_up(self, ask: Option<AskId>) {
        Mailbox::give_up(self.id, ask);
    }

    fn forward(self) -> Option<Forward> {
        Mailbox::forward(self.id)
    }

    fn enter_outside(self) -> Result<mesh::OutsidePass, Refused> {
        self.id.enter_outside().map_err(refused)
    }

    fn run_there(self, job: Job) -> Result<(), Job> {
        self.id.run_there(job)
    }

    #[inline]
    fn into_local(env: A::LocalMsg) -> A::LocalMsg {
        env
    }

    #[inline]
    fn try_send(self, lane: Lane, build: impl FnOnce() -> A::LocalMsg) -> Result<(), Refused> {
        self.id
            .visit(|mailbox| mailbox.try_push(lane, build))
            .unwrap_or(Err(Refused::Stopped))
    }

    #[inline]
    fn ask_at_once<R: 'static>(
        self,
        lane: Lane,
        build: impl FnOnce(Reply<R>) -> A::LocalMsg,
    ) -> Option<Answer<R>> {
        self.id
            .visit(|mailbox| mailbox.ask_at_once(lane, build))
            .flatten()
    }

    fn poll_send(
        self,
        lane: Lane,
        place: &mut Place,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> A::LocalMsg,
    ) -> Poll<Result<(), Refused>> {
        poll_here(self.id, lane, place, cx, build)
    }

    fn send_outside(self, _: Lane, _: A::LocalMsg, _: Outside) -> Result<(), Refused> {
        // The handle cannot leave its thread; only the end of the shard makes its own thread an outside.
        Err(Refused::Stopped)
    }
}
