//! What can go wrong, one type per way of failing.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_runtime::ShardId;
use greenroom_runtime::mesh::ResidentId;

use crate::actor::Actor;
use crate::fate::PanicReport;
use crate::life::ExitReason;
use crate::mailbox::Mailbox;
use crate::names::{Named, RegisterError};
use crate::reply::Failure;

/// Which call of which actor an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    pub(crate) actor: &'static str,
    pub(crate) method: &'static str,
    pub(crate) shard: Option<ShardId>,
    pub(crate) number: (u16, u64),
}

impl CallSite {
    /// A call to the actor of a mailbox.
    pub(crate) fn of<A: Actor>(id: ResidentId<Mailbox<A>>, method: &'static str) -> Self {
        Self {
            actor: A::NAME,
            method,
            shard: id.place(),
            number: id.number(),
        }
    }

    /// Of a call that no actor gets.
    pub(crate) const STAND_IN: Self = Self {
        actor: "stand-in",
        method: "call",
        shard: None,
        number: (0, 0),
    };

    /// The name of the actor's type, or what `#[actor(name = ..)]` says.
    #[must_use]
    pub fn actor(&self) -> &'static str {
        self.actor
    }

    /// The method that was called.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// The actor's shard, if the call came from a shard of the same system.
    #[must_use]
    pub fn shard(&self) -> Option<ShardId> {
        self.shard
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.actor, self.method)?;
        match self.shard {
            Some(shard) => write!(f, " on {shard}"),
            None => write!(f, " of actor {}.{}", self.number.0, self.number.1),
        }
    }
}

/// Whether the handler of a call ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerRan {
    /// It did not begin: the call can be made again without being done twice.
    No,
    /// It began; it may have had any part of its effect.
    Yes,
    /// The caller gave up without knowing.
    Unknown,
}

/// Why an ask has no value. `E` is the handler's own error type, if it returns a `Result`.
#[non_exhaustive]
pub enum CallError<E = Infallible> {
    /// The handler ran and returned an error.
    Handler(E),
    /// The actor had stopped before the handler began.
    Stopped(CallSite),
    /// The mailbox was full, and its actor does not let senders wait; the handler did not begin.
    Overflowed(CallSite),
    /// The actor was killed, or its shard shut down, while the handler ran.
    Killed(CallSite),
    /// The handler panicked, which ended the actor.
    Panicked(CallSite, Box<PanicReport>),
    /// No answer came within the limit.
    Timeout(CallSite, Timeout),
    /// The handler dropped its [`crate::Reply`] without an answer.
    NoReply(CallSite),
    /// The answer would never have come: the actor waited, over others perhaps, for the one that asked it.
    Cycle(CallSite, Cycle),
    /// The actor did not start: why, in the words of its factory or its start hook.
    NotStarted(CallSite, Box<str>),
}

/// The calls by which actors wait for each other in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    path: Box<[CallSite]>,
}

impl Cycle {
    pub(crate) fn new(path: Vec<CallSite>) -> Self {
        Self { path: path.into() }
    }

    /// The calls, each made by the actor that the one before is waiting for; the first is the one that failed, and the
    /// last waits for the actor that made it.
    #[must_use]
    pub fn path(&self) -> &[CallSite] {
        &self.path
    }

    /// Says who waits for whom, and what to do when an actor waits for itself, or when several wait for each other.
    fn explain(&self, f: &mut fmt::Formatter<'_>, alone: &str, several: &str) -> fmt::Result {
        if self.path.len() == 1 {
            write!(f, "for its actor waits for itself: {alone}")
        } else {
            write!(
                f,
                "for actors wait for each other in a cycle: {self}; {several}"
            )
        }
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, site) in self.path.iter().enumerate() {
            let arrow = if place == 0 { "" } else { " -> " };
            write!(f, "{arrow}{site}")?;
        }
        Ok(())
    }
}

/// The limit that passed, and where the call was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    pub(crate) limit: Duration,
    pub(crate) source: LimitSource,
    pub(crate) sent: bool,
}

/// Where the limit of an ask came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitSource {
    /// The call: [`crate::Call::timeout`] or [`crate::Call::deadline`].
    Call,
    /// The system, see [`crate::Builder::ask_deadline`].
    System,
    /// The ask which the handler that called was serving: it had so much time left.
    Inherited,
}

impl Timeout {
    /// The limit that passed.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Where it came from.
    #[must_use]
    pub fn source(&self) -> LimitSource {
        self.source
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit;
        match self.source {
            LimitSource::Call => write!(f, "{limit:?}"),
            LimitSource::System => {
                let text = format!("{limit:?}");
                let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.');
                let (count, unit) = text.split_at(unit.unwrap_or(text.len()));
                write!(
                    f,
                    "the default deadline {count} {unit}: say `.timeout(..)` or `.no_timeout()` at the call, or set \
                     another with `System::builder().ask_deadline(..)`"
                )
            }
            LimitSource::Inherited => write!(
                f,
                "{limit:?}, which was left to the ask that its caller was handling"
            ),
        }
    }
}

impl<E> CallError<E> {
    pub(crate) fn from_failure(site: CallSite, failure: Failure) -> Self {
        match failure {
            Failure::Stopped => Self::Stopped(site),
            Failure::Overflowed => Self::Overflowed(site),
            Failure::Killed => Self::Killed(site),
            Failure::NoReply => Self::NoReply(site),
            Failure::NotStarted(cause) => Self::NotStarted(site, cause),
            Failure::Panicked(report) => Self::Panicked(site, report),
        }
    }

    /// Whether the handler ran, which decides if the call may be made again.
    #[must_use]
    pub fn handler_ran(&self) -> HandlerRan {
        match self {
            Self::Stopped(_)
            | Self::NotStarted(..)
            | Self::Overflowed(_)
            | Self::Timeout(_, Timeout { sent: false, .. }) => HandlerRan::No,
            Self::Timeout(_, _) | Self::Cycle(_, _) => HandlerRan::Unknown,
            Self::Handler(_) | Self::Killed(_) | Self::Panicked(_, _) | Self::NoReply(_) => {
                HandlerRan::Yes
            }
        }
    }

    /// Whether the actor had stopped before the handler began.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }

    /// Whether the actor did not start.
    #[must_use]
    pub fn is_not_started(&self) -> bool {
        matches!(self, Self::NotStarted(..))
    }

    /// Whether the mailbox was full, so that the call may be made again later.
    #[must_use]
    pub fn is_overflowed(&self) -> bool {
        matches!(self, Self::Overflowed(_))
    }

    /// Whether the limit passed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout(_, _))
    }

    /// The cycle of waiting actors that the call closed.
    #[must_use]
    pub fn cycle(&self) -> Option<&Cycle> {
        match self {
            Self::Cycle(_, cycle) => Some(cycle),
            _ => None,
        }
    }

    /// The panic that ended the handler.
    #[must_use]
    pub fn panic(&self) -> Option<&PanicReport> {
        match self {
            Self::Panicked(_, report) => Some(report),
            _ => None,
        }
    }

    /// Which call this is about; `None` for the handler's own error.
    #[must_use]
    pub fn site(&self) -> Option<&CallSite> {
        match self {
            Self::Handler(_) => None,
            Self::Stopped(site)
            | Self::Overflowed(site)
            | Self::Killed(site)
            | Self::Panicked(site, _)
            | Self::Timeout(site, _)
            | Self::NotStarted(site, _)
            | Self::NoReply(site)
            | Self::Cycle(site, _) => Some(site),
        }
    }

    /// The handler's own error.
    ///
    /// # Errors
    /// Gives the error back when it is about the call.
    pub fn into_handler(self) -> Result<E, Self> {
        match self {
            Self::Handler(error) => Ok(error),
            other => Err(other),
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(_) => f.write_str("the handler returned an error"),
            Self::Stopped(site) => write!(f, "{site} was not called: the actor has stopped"),
            Self::Overflowed(site) => write!(
                f,
                "{site} was not called: the mailbox was full, and its `overflow` policy lets nobody wait"
            ),
            Self::Killed(site) => {
                write!(f, "{site} was cut off: the actor was killed while it ran")
            }
            Self::Panicked(site, report) => write!(f, "{site} panicked: {report}"),
            Self::Timeout(site, timeout) if timeout.sent => {
                write!(f, "{site} gave no answer within {timeout}")
            }
            Self::Timeout(site, timeout) => {
                write!(
                    f,
                    "{site} was not called: its mailbox had no room within {timeout}"
                )
            }
            Self::NoReply(site) => write!(f, "{site} dropped its reply without an answer"),
            Self::Cycle(site, cycle) => {
                write!(f, "{site} would never have answered, ")?;
                cycle.explain(
                    f,
                    "call the method on `self`, or tell it",
                    "let one of them tell, or answer later with a `Reply`",
                )
            }
            Self::NotStarted(site, cause) => {
                write!(f, "{site} was not called: the actor did not start: {cause}")
            }
        }
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(error) => error.fmt(f),
            other => other.describe(f),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(error) => f.debug_tuple("Handler").field(error).finish(),
            other => other.describe(f),
        }
    }
}

/// For any handler error that can be shown, a `String` included, so that `?` passes it on. Its own causes are behind
/// [`CallError::into_handler`].
impl<E: fmt::Debug + fmt::Display> std::error::Error for CallError<E> {}

/// Why a message was not sent; it still has the arguments.
pub struct SendError<A> {
    pub(crate) site: CallSite,
    pub(crate) full: bool,
    /// It would never have had room.
    pub(crate) cycle: Option<Cycle>,
    pub(crate) args: Option<A>,
}

impl<A> SendError<A> {
    /// Whether there was no room, so that it may be tried again.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Whether the actor has stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        !self.full
    }

    /// The cycle of waiting actors that the wait for room closed; such an error [`is_full`](Self::is_full).
    #[must_use]
    pub fn cycle(&self) -> Option<&Cycle> {
        self.cycle.as_ref()
    }

    /// The arguments, as a tuple. `None` only when they had left for the actor's shard from a thread outside the
    /// system and found the actor gone, or when a [`crate::Recipient`] had made something else of its item.
    #[must_use]
    pub fn into_args(self) -> Option<A> {
        self.args
    }

    /// Which call this is about.
    #[must_use]
    pub fn site(&self) -> &CallSite {
        &self.site
    }

    /// The same error with what `map` makes of the arguments, if anything.
    pub(crate) fn map_args<T>(self, map: impl FnOnce(A) -> Option<T>) -> SendError<T> {
        SendError {
            site: self.site,
            full: self.full,
            cycle: self.cycle,
            args: self.args.and_then(map),
        }
    }
}

impl<A> fmt::Display for SendError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let site = self.site;
        if let Some(cycle) = &self.cycle {
            write!(f, "{site} was not sent: there would never have been room, ")?;
            cycle.explain(f, "use `try_tell`", "let one of them use `try_tell`")
        } else if self.full {
            write!(
                f,
                "{site} was not sent: the mailbox is full, or the link to its shard"
            )
        } else {
            write!(f, "{site} was not sent: the actor has stopped")
        }
    }
}

impl<A> fmt::Debug for SendError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<A> std::error::Error for SendError<A> {}

/// Why a start hook refused to go on.
#[derive(Debug)]
pub struct StartFailure {
    text: String,
}

impl StartFailure {
    /// A failure with a text.
    pub fn new(text: impl fmt::Display) -> Self {
        Self {
            text: text.to_string(),
        }
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why an actor was not started.
pub struct SpawnError {
    pub(crate) actor: &'static str,
    pub(crate) shard: ShardId,
    pub(crate) kind: SpawnErrorKind,
}

#[derive(Debug)]
pub(crate) enum SpawnErrorKind {
    /// There is no such shard, or it has shut down.
    NoShard {
        shards: usize,
    },
    Refused(Arc<StartFailure>),
    Panicked(PanicReport),
    /// It was to have a name.
    Name(RegisterError),
    /// Something else ended the actor while it started.
    Cut(ExitReason),
    /// The actor whose child it was to be is gone.
    NoParent,
}

impl SpawnError {
    /// Whether the factory or the start hook panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self.kind, SpawnErrorKind::Panicked(_))
    }

    /// Whether another actor has the name it was to have.
    #[must_use]
    pub fn is_name_taken(&self) -> bool {
        self.holder().is_some()
    }

    /// Who has the name it was to have, if that is why.
    #[must_use]
    pub fn holder(&self) -> Option<&Named> {
        match &self.kind {
            SpawnErrorKind::Name(error) => error.holder(),
            _ => None,
        }
    }

    /// Whether there is no such shard, or the system is shutting down.
    #[must_use]
    pub fn is_no_shard(&self) -> bool {
        matches!(self.kind, SpawnErrorKind::NoShard { .. })
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { actor, shard, kind } = self;
        write!(f, "{actor} did not start on {shard}: ")?;
        match kind {
            SpawnErrorKind::NoShard { shards } if shard.index() >= *shards => {
                write!(f, "the system has {shards} shards, counted from 0")
            }
            SpawnErrorKind::NoShard { .. } => f.write_str("the system is shutting down"),
            SpawnErrorKind::Refused(failure) => write!(f, "{failure}"),
            SpawnErrorKind::Panicked(report) => write!(f, "it panicked: {report}"),
            SpawnErrorKind::Name(error) => write!(f, "{error}"),
            SpawnErrorKind::Cut(reason) => write!(f, "{reason}"),
            SpawnErrorKind::NoParent => f.write_str("its parent has ended"),
        }
    }
}

impl fmt::Debug for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SpawnError {}

/// Any error, for `main` and for code that only passes errors on.
///
/// Every error type converts into it with `?`. Its `Debug` form, which `main` prints, is the text with its causes.
pub struct Error(Box<dyn std::error::Error + Send + Sync>);

impl Error {
    /// The error inside.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn std::error::Error + Send + Sync> {
        self.0
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, "\n  caused by: {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
