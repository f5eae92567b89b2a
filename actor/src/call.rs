//! One builder for every call: ask, tell, try to tell, with or without a limit.

use std::fmt;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::mesh::{self, OutsideReply, ReplyKey, ReplySlot};
use greenroom_runtime::time::{Sleep, sleep};

use crate::actor::Actor;
use crate::address::{Outside, Places, Port, Refused};
use crate::error::{CallError, CallSite, SendError, Timeout};
use crate::reply::{Answer, Reply};

/// A generated method, as errors name it.
#[derive(Debug)]
pub struct Method {
    /// The method's name.
    pub name: &'static str,
}

/// How a handler answers.
pub trait ReplyMode {
    /// What the handler returns.
    type Reply: 'static;
}

/// How a handler's return value becomes the value of the call.
pub trait Answers: ReplyMode {
    /// What awaiting the call gives.
    type Output;

    #[doc(hidden)]
    fn value(reply: Self::Reply) -> Self::Output;

    #[doc(hidden)]
    fn error(error: CallError) -> Self::Output;
}

/// The value as it is: awaiting gives `Result<R, CallError>`.
#[derive(Debug)]
pub struct Plain<R>(PhantomData<fn() -> R>);

/// A `Result`, flattened: awaiting gives `Result<T, CallError<E>>`.
#[derive(Debug)]
pub struct Flat<R>(PhantomData<fn() -> R>);

/// `std::result::Result`, under any alias.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is spelled `..Result` but is not `std::result::Result`",
    note = "write `#[message(plain)]` to return the type unflattened"
)]
pub trait IsResult: 'static {
    /// The value.
    type Ok;
    /// The error.
    type Err;

    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Ok, Self::Err>;

    #[doc(hidden)]
    fn is_failure(&self) -> bool;
}

impl<T: 'static, E: 'static> IsResult for Result<T, E> {
    type Ok = T;
    type Err = E;

    fn into_result(self) -> Self {
        self
    }

    fn is_failure(&self) -> bool {
        self.is_err()
    }
}

impl<R: 'static> ReplyMode for Plain<R> {
    type Reply = R;
}

impl<R: 'static> Answers for Plain<R> {
    type Output = Result<R, CallError>;

    fn value(reply: R) -> Self::Output {
        Ok(reply)
    }

    fn error(error: CallError) -> Self::Output {
        Err(error)
    }
}

impl<R: 'static> ReplyMode for Flat<R> {
    type Reply = R;
}

impl<R: IsResult> Answers for Flat<R> {
    type Output = Result<R::Ok, CallError<R::Err>>;

    fn value(reply: R) -> Self::Output {
        reply.into_result().map_err(CallError::Handler)
    }

    fn error(error: CallError) -> Self::Output {
        Err(match error {
            CallError::Handler(never) => match never {},
            CallError::Stopped(site) => CallError::Stopped(site),
            CallError::Killed(site) => CallError::Killed(site),
            CallError::Panicked(site, report) => CallError::Panicked(site, report),
            CallError::Timeout(site, timeout) => CallError::Timeout(site, timeout),
            CallError::NoReply(site) => CallError::NoReply(site),
        })
    }
}

type Build<P, M, A> = fn(A, Reply<<M as ReplyMode>::Reply>) -> <P as Port>::Env;

/// A call that has not been made: await it to ask, or choose another way.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
/// use std::time::Duration;
///
/// struct Echo;
///
/// #[actor]
/// impl Echo {
///     pub fn echo(&self, text: String) -> String { text }
/// }
///
/// let system = System::start(1)?;
/// system.block_on(async {
///     let echo = system.spawn_on(0, || Echo).await?;
///     let text = || "hi".to_owned();
///     echo.echo(text()).tell().await?;                                        // waits for room, not for the handler
///     echo.echo(text()).try_tell()?;                                          // never waits
///     assert_eq!(echo.echo(text()).await?, "hi");                             // asks
///     assert_eq!(echo.echo(text()).timeout(Duration::from_secs(5)).await?, "hi");
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
#[must_use = "a call does nothing until it is `.await`ed or told with `.tell()`"]
pub struct Call<P: Port, M: ReplyMode, A> {
    port: P,
    method: &'static Method,
    args: A,
    build: Build<P, M, A>,
}

impl<P: Port, M: ReplyMode, A> Call<P, M, A> {
    /// For generated code.
    #[doc(hidden)]
    #[inline]
    pub fn new(port: P, method: &'static Method, args: A, build: Build<P, M, A>) -> Self {
        Self {
            port,
            method,
            args,
            build,
        }
    }

    /// Sends without asking for the answer. The future is done when the mailbox, or the link to its shard, has accepted
    /// the message, so a sender cannot run ahead of its actor by more than the bound.
    ///
    /// # Errors
    /// The future resolves to a [`SendError`] with the arguments when the actor has stopped. On another shard that is
    /// found out on arrival only: such a message is counted as a dead letter. An actor that tells itself something from
    /// one of its own handlers is refused when its mailbox is full: room comes when the handler ends.
    ///
    /// # Cancel safety
    /// Dropping the future before it is done sends nothing.
    #[inline]
    pub fn tell(self) -> Tell<P, M, A> {
        Tell {
            call: Unsent::new(self),
            outside: None,
        }
    }

    /// Sends without waiting, if the message is accepted now.
    ///
    /// On the actor's shard that takes room in its mailbox. To another shard it takes room in the link, which in one turn
    /// of the calling shard accepts at most 1024 messages; a burst that is to go on waits with [`Call::tell`].
    /// From a thread outside the system at most 4096 such messages may be on their way to a shard.
    ///
    /// # Errors
    /// [`SendError`], with the arguments, when there is no room or the actor has stopped.
    #[inline]
    pub fn try_tell(self) -> Result<(), SendError<A>> {
        let mut unsent = Unsent::new(self);
        match unsent.try_send(Reply::none) {
            Ok(()) => Ok(()),
            Err(Refused::Outside) => unsent.try_tell_outside(),
            Err(refused) => Err(unsent.give_back(refused)),
        }
    }

    /// Asks with a limit on the whole call, from its first poll to the answer.
    pub fn timeout(self, limit: Duration) -> Ask<P, M, A> {
        Ask {
            limit: Some(limit),
            ..Ask::new(self)
        }
    }
}

impl<P: Port, M: Answers, A> IntoFuture for Call<P, M, A> {
    type Output = M::Output;
    type IntoFuture = Ask<P, M, A>;

    #[inline]
    fn into_future(self) -> Ask<P, M, A> {
        Ask::new(self)
    }
}

impl<P: Port, M: ReplyMode, A> Ask<P, M, A> {
    #[inline]
    fn new(call: Call<P, M, A>) -> Self {
        Self {
            call: Unsent::new(call),
            state: State::Sending,
            limit: None,
            timer: Timer::None,
        }
    }
}

impl<P: Port, M: ReplyMode, A> fmt::Debug for Call<P, M, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Call({}::{})",
            <P::Actor as Actor>::NAME,
            self.method.name
        )
    }
}

/// A message that is not built yet, and its places in queues.
struct Unsent<P: Port, M: ReplyMode, A> {
    port: P,
    method: &'static Method,
    /// Gone once the message was built.
    args: Option<A>,
    build: Build<P, M, A>,
    places: Places,
}

impl<P: Port, M: ReplyMode, A> Unsent<P, M, A> {
    #[inline]
    fn new(call: Call<P, M, A>) -> Self {
        let Call {
            port,
            method,
            args,
            build,
        } = call;
        Self {
            port,
            method,
            args: Some(args),
            build,
            places: Places::default(),
        }
    }

    #[inline]
    fn try_send(&mut self, reply: impl FnOnce() -> Reply<M::Reply>) -> Result<(), Refused> {
        let Self { args, build, .. } = self;
        self.port
            .try_send(|| build(args.take().expect("a message is built once"), reply()))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        reply: impl FnOnce() -> Reply<M::Reply>,
    ) -> Poll<Result<(), Refused>> {
        let Self {
            args,
            build,
            places,
            ..
        } = self;
        self.port.poll_send(places, cx, || {
            build(args.take().expect("a message is built once"), reply())
        })
    }

    fn send_outside(&mut self, reply: Reply<M::Reply>, sent: Outside) -> Result<(), Refused> {
        let args = self.args.take().expect("a message is built once");
        self.port.send_outside((self.build)(args, reply), sent)
    }

    #[cold]
    fn try_tell_outside(mut self) -> Result<(), SendError<A>> {
        let Some(pass) = self.port.id().enter_outside() else {
            return Err(self.give_back(Refused::Full));
        };
        let sent = self.send_outside(Reply::none(), Outside::Pass(pass));
        sent.map_err(|refused| self.give_back(refused))
    }

    #[cold]
    fn give_back(&mut self, refused: Refused) -> SendError<A> {
        SendError {
            site: self.site(),
            full: refused == Refused::Full,
            args: self.args.take(),
        }
    }

    #[cold]
    fn site(&self) -> CallSite {
        let id = self.port.id();
        CallSite {
            actor: <P::Actor as Actor>::NAME,
            method: self.method.name,
            shard: id.place(),
            number: id.number(),
        }
    }
}

impl<P: Port, M: ReplyMode, A> Drop for Unsent<P, M, A> {
    #[inline]
    fn drop(&mut self) {
        if self.args.is_some() {
            self.places.leave(self.port.id());
        }
    }
}

/// The future of [`Call::tell`].
#[must_use = "a message is sent when the future is awaited"]
pub struct Tell<P: Port, M: ReplyMode, A> {
    call: Unsent<P, M, A>,
    /// From outside: resolves when the message is in the mailbox.
    outside: Option<oneshot::Receiver<()>>,
}

impl<P: Port, M: ReplyMode, A> Unpin for Tell<P, M, A> {}

impl<P: Port, M: ReplyMode, A> Future for Tell<P, M, A> {
    type Output = Result<(), SendError<A>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.outside.is_none() {
            match this.call.poll_send(cx, Reply::none) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(Refused::Outside)) => {
                    let (sent, waiting) = oneshot::channel();
                    if let Err(refused) = this
                        .call
                        .send_outside(Reply::none(), Outside::Waiting(sent))
                    {
                        return Poll::Ready(Err(this.call.give_back(refused)));
                    }
                    this.outside = Some(waiting);
                }
                Poll::Ready(Err(refused)) => return Poll::Ready(Err(this.call.give_back(refused))),
            }
        }
        let Some(outside) = &mut this.outside else {
            return Poll::Pending;
        };
        pin!(outside)
            .poll(cx)
            .map(|sent| sent.map_err(|_| this.call.give_back(Refused::Stopped)))
    }
}

impl<P: Port, M: ReplyMode, A> fmt::Debug for Tell<P, M, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tell({})", self.call.site())
    }
}

/// The future of an ask.
///
/// # Cancel safety
/// Dropped before the message was accepted it sends nothing; after that the handler runs, and its answer is dropped.
///
/// # Shard affinity
/// `Send` if arguments and answer are and the handle is an [`crate::Addr`]. It may be polled on any thread, and still
/// answers if it moves to another one in between.
#[must_use = "an ask does nothing until it is awaited"]
pub struct Ask<P: Port, M: ReplyMode, A> {
    call: Unsent<P, M, A>,
    state: State<M::Reply>,
    limit: Option<Duration>,
    timer: Timer,
}

enum State<R: 'static> {
    Sending,
    Waiting(ReplySlot<Answer<R>>),
    Outside {
        reply: OutsideReply<Answer<R>>,
        /// Dropped with the ask: a message that still waits for room is then not sent.
        #[expect(dead_code, reason = "held for its drop")]
        accepted: oneshot::Receiver<()>,
    },
}

/// What limits the call.
enum Timer {
    None,
    /// On a shard: its own timer.
    Here(Sleep),
    /// Elsewhere: a timer of the actor's shard.
    Outside(oneshot::Receiver<()>),
    /// There is nobody left to keep time: the answer, or its absence, will come at once.
    Lost,
}

impl<P: Port, M: ReplyMode, A> Unpin for Ask<P, M, A> {}

impl<P: Port, M: Answers, A> Future for Ask<P, M, A> {
    type Output = M::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M::Output> {
        let this = &mut *self;
        if let State::Sending = this.state
            && let Poll::Ready(Err(refused)) = this.poll_sending(cx)
        {
            debug_assert!(
                refused != Refused::Full,
                "a sender that waits is not told that it is full"
            );
            return Poll::Ready(M::error(CallError::Stopped(this.call.site())));
        }
        let answer = match &mut this.state {
            State::Sending => Poll::Pending,
            State::Waiting(slot) => Pin::new(slot).poll(cx),
            // A message that is dropped somewhere answers; a missing answer means that its shard is gone.
            State::Outside { reply, .. } => Pin::new(reply).poll(cx).map(Result::ok),
        };
        match answer {
            Poll::Ready(Some(Ok(value))) => Poll::Ready(M::value(value)),
            Poll::Ready(Some(Err(failure))) => {
                Poll::Ready(M::error(CallError::from_failure(this.call.site(), failure)))
            }
            Poll::Ready(None) => Poll::Ready(M::error(CallError::Killed(this.call.site()))),
            Poll::Pending => match this.limit {
                Some(limit) => this.poll_limit(limit, cx),
                None => Poll::Pending,
            },
        }
    }
}

impl<P: Port, M: Answers, A> Ask<P, M, A> {
    /// Sends; `Ready(Ok)` when the state says where the answer will come.
    #[inline]
    fn poll_sending(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        let mut opened = None;
        let open = || {
            let (slot, key): (_, ReplyKey<Answer<M::Reply>>) =
                mesh::open().expect("a send that is accepted here is made on a shard");
            opened = Some(slot);
            Reply::to(key)
        };
        match self.call.poll_send(cx, open) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => {
                self.state = State::Waiting(opened.expect("opened when the message was built"));
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(Refused::Outside)) => {
                let (reply, key) = mesh::open_outside();
                let (sender, accepted) = oneshot::channel();
                let sent = self
                    .call
                    .send_outside(Reply::to(key), Outside::Waiting(sender));
                self.state = State::Outside { reply, accepted };
                Poll::Ready(sent)
            }
            Poll::Ready(Err(refused)) => Poll::Ready(Err(refused)),
        }
    }

    #[cold]
    fn poll_limit(&mut self, limit: Duration, cx: &mut Context<'_>) -> Poll<M::Output> {
        let on_shard = greenroom_runtime::current_shard().is_some();
        let moved_off = matches!(self.timer, Timer::Here(_)) && !on_shard;
        if moved_off || matches!(self.timer, Timer::None) {
            self.timer = if on_shard {
                Timer::Here(sleep(limit))
            } else {
                Timer::Outside(self.call.port.timer_outside(limit))
            };
        }
        let passed = match &mut self.timer {
            Timer::None | Timer::Lost => Poll::Pending,
            Timer::Here(sleep) => pin!(sleep).poll(cx).map(|()| true),
            Timer::Outside(fired) => Pin::new(fired).poll(cx).map(|fired| fired.is_ok()),
        };
        match passed {
            Poll::Pending => Poll::Pending,
            Poll::Ready(false) => {
                self.timer = Timer::Lost;
                Poll::Pending
            }
            Poll::Ready(true) => {
                let sent = self.call.args.is_none();
                Poll::Ready(M::error(CallError::Timeout(
                    self.call.site(),
                    Timeout { limit, sent },
                )))
            }
        }
    }
}

impl<P: Port, M: ReplyMode, A> fmt::Debug for Ask<P, M, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ask({})", self.call.site())
    }
}
