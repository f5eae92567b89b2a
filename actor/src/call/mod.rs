//! One builder for every call: ask, tell, try to tell, with or without a limit.
//!
//! A [`Call`] is lazy: it holds the arguments and, in its type, which method is meant. The message is built where it goes,
//! in the mailbox or in the ring to the actor's shard, by code the compiler sees at the call. `send` has the way there,
//! and [`Tell`]; `ask` waits for the answer.

mod ask;
mod blocking;
mod erased;
mod fit;
mod send;
mod term;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use greenroom_runtime::mesh::Lane;
use greenroom_runtime::time::Instant;

pub use self::ask::Ask;
pub use self::erased::{DynCall, DynCallOf};
pub use self::fit::{is_enough, message_fits};
pub use self::send::Tell;
pub(crate) use self::send::Unsent;
pub(crate) use self::term::Allowance;
use self::term::Limit;
use crate::actor::Actor;
use crate::address::{Port, Refused};
use crate::error::{CallError, SendError};
use crate::reply::Reply;
use crate::way::Way;

/// One message of an actor, as its calls are made. Implemented by generated code for a marker type of the method.
pub trait Message<M: ReplyMode, A> {
    /// Those it is one of: all messages of the actor, or all that may cross shards.
    type Of;

    /// The method's name.
    const NAME: &'static str;

    /// Whether its handler has answered when it returns: it is no `async fn` and takes no [`Reply`].
    const ANSWERS_AT_ONCE: bool = true;

    /// The lane of the message.
    const LANE: Lane = Lane::Normal;

    /// The message of these arguments.
    fn build(args: A, reply: Reply<M::Reply>) -> Self::Of;

    /// The hash of the argument marked `#[key]`, which every message that is called on a [`Route`](crate::Route) has.
    fn key_hash(args: &A) -> u64 {
        let _ = args;
        unreachable!(
            "`{}` has no key, and was called on a way that needs one",
            Self::NAME
        )
    }
}

/// A [`Message`] that can take a way.
pub trait Method<W: Way, M: ReplyMode, A>: Message<M, A, Of: Into<W::Env>> {
    /// What travels.
    #[doc(hidden)]
    fn envelope(args: A, reply: Reply<M::Reply>) -> W::Env;
}

impl<W: Way, M: ReplyMode, A, B: Message<M, A, Of: Into<W::Env>>> Method<W, M, A> for B {
    #[inline]
    fn envelope(args: A, reply: Reply<M::Reply>) -> W::Env {
        B::build(args, reply).into()
    }
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
            CallError::Overflowed(site) => CallError::Overflowed(site),
            CallError::Killed(site) => CallError::Killed(site),
            CallError::Panicked(site, report) => CallError::Panicked(site, report),
            CallError::Timeout(site, timeout) => CallError::Timeout(site, timeout),
            CallError::NoReply(site) => CallError::NoReply(site),
            CallError::Cycle(site, cycle) => CallError::Cycle(site, cycle),
            CallError::NotStarted(site, cause) => CallError::NotStarted(site, cause),
        })
    }
}

/// A method whose message takes the urgent lane in this call.
#[derive(Debug)]
pub struct Urgent<B>(PhantomData<fn() -> B>);

impl<M: ReplyMode, A, B: Message<M, A>> Message<M, A> for Urgent<B> {
    type Of = B::Of;

    const NAME: &'static str = B::NAME;
    const ANSWERS_AT_ONCE: bool = B::ANSWERS_AT_ONCE;
    const LANE: Lane = Lane::Urgent;

    #[inline]
    fn build(args: A, reply: Reply<M::Reply>) -> B::Of {
        B::build(args, reply)
    }
}

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
pub struct Call<P: Port, M: ReplyMode, A, B> {
    port: P,
    args: A,
    method: PhantomData<fn() -> (M, B)>,
}

impl<P: Port, M: ReplyMode, A, B> Call<P, M, A, B> {
    #[inline]
    pub(crate) fn new(port: P, args: A) -> Self {
        Self {
            port,
            args,
            method: PhantomData,
        }
    }
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> Call<P, M, A, B> {
    pub(crate) fn into_args(self) -> A {
        self.args
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
    /// Dropping the future before it is done sends nothing. One that waits on a shard has a place in line, and whoever stands behind it
    /// waits for it: poll it or drop it, rather than keep it while the same task awaits another call of the actor.
    #[inline]
    pub fn tell(self) -> Tell<P, M, A, B> {
        Tell::new(self)
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

    /// Lets the message pass those in the mailbox that are not urgent.
    ///
    /// Urgent messages have a lane of their own, on the way and in the mailbox, with room for 16 (as many as there are,
    /// if the mailbox is unbounded). Among themselves they keep their order; between the lanes there is none, so what
    /// this sender has sent before may be handled after it. A message whose calls are all urgent is declared so, with
    /// `#[message(urgent)]`.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    ///
    /// #[derive(Default)]
    /// struct Log { lines: Vec<String> }
    ///
    /// #[actor]
    /// impl Log {
    ///     pub fn add(&mut self, line: &'static str) { self.lines.push(line.to_owned()); }
    ///     pub fn lines(&self) -> Vec<String> { self.lines.clone() }
    /// }
    ///
    /// let system = System::start(1)?;
    /// let log = system.block_on(system.spawn_on(0, Log::default))?;
    /// let lines = system.run_on(0, move || async move {
    ///     log.add("slow").tell().await?;
    ///     log.add("alarm").urgent().tell().await?;
    ///     Ok::<_, greenroom::Error>(log.lines().await?)
    /// })?;
    /// assert_eq!(lines, ["alarm", "slow"]);
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    #[inline]
    pub fn urgent(self) -> Call<P, M, A, Urgent<B>> {
        Call::new(self.port, self.args)
    }

    /// Asks with a limit on the whole call, from its first poll to the answer.
    ///
    /// In a handler that serves an ask which has less time left, that is the limit. A limit that is not said is the
    /// system's, see [`crate::Builder::ask_deadline`].
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use std::time::Duration;
    ///
    /// #[derive(Default)]
    /// struct Silent { kept: Vec<Reply<u32>> }
    ///
    /// #[actor]
    /// impl Silent {
    ///     pub fn ask(&mut self, reply: Reply<u32>) { self.kept.push(reply); }
    /// }
    ///
    /// let system = System::start(1)?;
    /// let silent = system.block_on(system.spawn_on(0, Silent::default))?;
    /// let error = silent.ask().timeout(Duration::from_millis(10)).blocking().unwrap_err();
    /// assert!(error.is_timeout());
    /// assert!(error.to_string().ends_with("gave no answer within 10ms"));
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn timeout(self, limit: Duration) -> Ask<P, M, A, B> {
        Ask::limited(self, Limit::Within(limit))
    }

    /// Asks until a moment: one of the runtime's clock, or a `std::time::Instant`.
    ///
    /// For several calls that share what is left of a limit. One that has passed still sends the message, if it can at
    /// once; then nobody waits for the answer.
    pub fn deadline(self, at: impl Into<Instant>) -> Ask<P, M, A, B> {
        Ask::limited(self, Limit::Until(at.into()))
    }

    /// Asks without a limit of its own, also without the system's.
    ///
    /// In a handler that serves an ask with a limit, what is left of that still holds: the answer would come too late
    /// for whom it is for. Work that is to be done in any case is told, or asked for in a task of its own.
    pub fn no_timeout(self) -> Ask<P, M, A, B> {
        Ask::limited(self, Limit::Never)
    }
}

impl<P: Port, M: Answers, A, B: Method<P, M, A>> IntoFuture for Call<P, M, A, B> {
    type Output = M::Output;
    type IntoFuture = Ask<P, M, A, B>;

    #[inline]
    fn into_future(self) -> Ask<P, M, A, B> {
        Ask::new(self)
    }
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> fmt::Debug for Call<P, M, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({}::{})", <P::Actor as Actor>::NAME, B::NAME)
    }
}
