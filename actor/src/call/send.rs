//! The way of a message to its mailbox.

use std::fmt;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_channel::oneshot;
use greenroom_runtime::mesh::AskId;

use super::{Call, Method, ReplyMode};
use crate::address::{Port, Refused};
use crate::cycle::{Edge, Wait};
use crate::error::{CallSite, SendError};
use crate::handling::{self, Mode};
use crate::observe::Trail;
use crate::outside::Outside;
use crate::place::Place;
use crate::reply::{Answer, Reply};

/// A message that is not built yet, and its place in a queue.
///
/// In C's layout, and the place at the end, because of one thing that a processor is slow at: reading in one piece what was
/// just written in several. A place that is none is written in one byte. Copied together with what stands behind it, that
/// byte would cost more than the rest of a send.
#[repr(C)]
pub(crate) struct Unsent<P: Port, M: ReplyMode, A, B> {
    port: P,
    /// Gone once the message was built.
    args: Option<A>,
    /// Names the wait for room, once a handler had to.
    wait: Option<AskId>,
    method: PhantomData<fn() -> (M, B)>,
    place: Place,
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> Unsent<P, M, A, B> {
    #[inline]
    pub(crate) fn new(call: Call<P, M, A, B>) -> Self {
        Self {
            port: call.port,
            args: Some(call.args),
            place: Place::None,
            wait: None,
            method: PhantomData,
        }
    }

    /// Whether it holds a place in a line.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        !matches!(self.place, Place::None)
    }

    /// The message, whose answer goes to `reply`, for whoever has found room for it.
    #[inline]
    pub(crate) fn build(&mut self, reply: Reply<M::Reply>) -> P::Env {
        B::envelope(take(&mut self.args), reply.sent(Trail::here()))
    }

    /// Gives its place up, and the call back if the message was not built.
    pub(crate) fn into_call(mut self) -> Option<Call<P, M, A, B>> {
        let args = self.args.take();
        args.map(|args| Call::new(self.port, args))
    }

    /// Whether the message was built, and so sent or on its way.
    pub(super) fn is_sent(&self) -> bool {
        self.args.is_none()
    }

    /// Sends a message, whose answer goes to `reply`, if it is accepted now.
    #[inline]
    pub(super) fn try_send(
        &mut self,
        reply: impl FnOnce() -> Reply<M::Reply>,
    ) -> Result<(), Refused> {
        let args = &mut self.args;
        let trail = Trail::here();
        self.port
            .try_send(B::LANE, || B::envelope(take(args), reply().sent(trail)))
    }

    /// Sends a message, whose answer goes to `reply`, when it is this sender's turn.
    #[inline]
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        mut reply: impl FnMut() -> Reply<M::Reply>,
    ) -> Poll<Result<(), Refused>> {
        if matches!(self.place, Place::None) {
            match self.try_send(&mut reply) {
                Err(Refused::Full) => {}
                done => return Poll::Ready(done),
            }
        }
        self.poll_in_line(cx, reply)
    }

    /// Asks, and gets the answer, if the actor is on this shard and has nothing else to do.
    #[inline]
    pub(super) fn ask_at_once(&mut self) -> Option<Answer<M::Reply>> {
        if !B::ANSWERS_AT_ONCE || !matches!(self.place, Place::None) {
            return None;
        }
        let args = &mut self.args;
        let trail = Trail::here();
        self.port
            .ask_at_once(B::LANE, |reply| B::envelope(take(args), reply.sent(trail)))
    }

    /// Waits for room, and for its turn.
    #[cold]
    fn poll_in_line(
        &mut self,
        cx: &mut Context<'_>,
        reply: impl FnOnce() -> Reply<M::Reply>,
    ) -> Poll<Result<(), Refused>> {
        let Self { args, place, .. } = self;
        let trail = Trail::here();
        self.port.poll_send(B::LANE, place, cx, || {
            B::envelope(take(args), reply().sent(trail))
        })
    }

    /// Names the wait, if it is one for room in the actor's mailbox.
    #[cold]
    pub(super) fn waits_for_room(&mut self) -> Option<AskId> {
        let is_for_actor = match &self.place {
            Place::Mailbox(..) => true,
            Place::Link(admission) => admission.waits_for_resident(),
            _ => false,
        };
        if is_for_actor && self.wait.is_none() {
            self.wait = AskId::take();
        }
        self.wait.filter(|_| is_for_actor)
    }

    /// What a handler that makes this call waits for, with so many clones of its waker.
    #[cold]
    pub(super) fn describe(&self, id: AskId, edge: Edge, wakers: usize) -> Wait {
        Wait {
            id,
            edge,
            site: self.site(),
            wakers,
            forward: self.port.forward(),
        }
    }

    pub(super) fn send_outside(
        &mut self,
        reply: Reply<M::Reply>,
        sent: Outside,
    ) -> Result<(), Refused> {
        let message = self.build(reply);
        self.port.send_outside(B::LANE, message, sent)
    }

    #[cold]
    pub(super) fn try_tell_outside(mut self) -> Result<(), SendError<A>> {
        let pass = match self.port.enter_outside() {
            Ok(pass) => pass,
            Err(refused) => return Err(self.give_back(refused)),
        };
        let sent = self.send_outside(Reply::none(), Outside::Pass(pass));
        sent.map_err(|refused| self.give_back(refused))
    }

    #[cold]
    pub(super) fn give_back(&mut self, refused: Refused) -> SendError<A> {
        SendError {
            site: self.site(),
            full: refused == Refused::Full,
            cycle: None,
            args: self.args.take(),
        }
    }

    #[cold]
    pub(crate) fn site(&self) -> CallSite {
        self.port.site(B::NAME)
    }
}

impl<P: Port, M: ReplyMode, A, B> Unsent<P, M, A, B> {
    #[inline]
    pub(crate) fn port(&self) -> P {
        self.port
    }
}

#[inline]
fn take<A>(args: &mut Option<A>) -> A {
    args.take().expect("a message is built once")
}

impl<P: Port, M: ReplyMode, A, B> Drop for Unsent<P, M, A, B> {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.place, Place::None) {
            self.port.leave(&mut self.place);
        }
    }
}

/// The future of [`Call::tell`].
#[must_use = "a message is sent when the future is awaited"]
#[repr(C)] // See `Unsent`.
pub struct Tell<P: Port, M: ReplyMode, A, B> {
    /// From outside: resolves when the message is in the mailbox.
    outside: Option<oneshot::Receiver<Result<(), Refused>>>,
    call: Unsent<P, M, A, B>,
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> Tell<P, M, A, B> {
    #[inline]
    pub(super) fn new(call: Call<P, M, A, B>) -> Self {
        Self {
            call: Unsent::new(call),
            outside: None,
        }
    }

    /// Waits for room.
    #[cold]
    fn wait(&mut self) -> Poll<Result<(), SendError<A>>> {
        let Some(id) = self.call.waits_for_room() else {
            return Poll::Pending;
        };
        match handling::note_wait(id) {
            Mode::Usual => {}
            Mode::Inquiring => {
                let shard = greenroom_runtime::current_shard();
                if let Some(shard) = shard {
                    let room = Edge::Room(shard, B::LANE);
                    handling::tell(self.call.describe(id, room, 1));
                }
            }
            Mode::Breaking => {
                if let Some(cycle) = handling::broken(id) {
                    return Poll::Ready(Err(SendError {
                        cycle: Some(cycle),
                        ..self.call.give_back(Refused::Full)
                    }));
                }
            }
        }
        Poll::Pending
    }

    /// The way of a thread that is no shard of the actor's system.
    #[cold]
    fn poll_outside(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<A>>> {
        if self.outside.is_none() {
            let (sent, waiting) = oneshot::channel();
            let sent = Outside::Waiting(sent);
            if let Err(refused) = self.call.send_outside(Reply::none(), sent) {
                return Poll::Ready(Err(self.call.give_back(refused)));
            }
            self.outside = Some(waiting);
        }
        let waiting = self.outside.as_mut().expect("set just now or before");
        pin!(waiting)
            .poll(cx)
            .map(|sent| sent.unwrap_or(Err(Refused::Stopped)))
            .map_err(|refused| self.call.give_back(refused))
    }
}

impl<P: Port, M: ReplyMode, A, B> Unpin for Tell<P, M, A, B> {}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> Future for Tell<P, M, A, B> {
    type Output = Result<(), SendError<A>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.outside.is_some() {
            return this.poll_outside(cx);
        }
        match this.call.poll_send(cx, Reply::none) {
            Poll::Pending => this.wait(),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Ready(Err(Refused::Outside)) => this.poll_outside(cx),
            Poll::Ready(Err(refused)) => Poll::Ready(Err(this.call.give_back(refused))),
        }
    }
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> fmt::Debug for Tell<P, M, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tell({})", self.call.site())
    }
}
