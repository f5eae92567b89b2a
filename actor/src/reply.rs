//! The answering end of an ask.

use std::fmt;

use greenroom_runtime::mesh::{AskNote, ReplyKey};
use greenroom_runtime::time::Instant;

use crate::fate::{self, Fate, PanicReport};
use crate::observe::Trail;

/// Why an ask has no answer, on its way to the asker.
#[derive(Debug)]
#[expect(
    unnameable_types,
    reason = "in the signature of a hidden method of a sealed trait"
)]
pub enum Failure {
    Stopped,
    Overflowed,
    Killed,
    NoReply,
    NotStarted(Box<str>),
    Panicked(Box<PanicReport>),
}

/// What is written into an asker's slot.
pub(crate) type Answer<R> = Result<R, Failure>;

/// The right to answer one ask, once. 16 bytes; with the feature `tracing`, 24.
///
/// A handler that takes a `Reply<T>` returns nothing and may keep it to answer later. Dropping it unanswered tells the
/// asker at once. Of a told message it leads nowhere.
///
/// # Shard affinity
/// `Send` if `R` is: an answer may be given on any thread.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
///
/// #[derive(Default)]
/// struct Gate { waiting: Vec<Reply<u32>> }
///
/// #[actor]
/// impl Gate {
///     pub fn pass(&mut self, reply: Reply<u32>) { self.waiting.push(reply); }
///     pub fn open(&mut self) {
///         for (place, reply) in (1..).zip(self.waiting.drain(..)) { reply.send(place); }
///     }
/// }
///
/// let system = System::start(1)?;
/// system.block_on(async {
///     let gate = system.spawn_on(0, Gate::default).await?;
///     let (first, second, _) =
///         futures_util::join!(gate.pass().into_future(), gate.pass().into_future(), gate.open().into_future());
///     assert_eq!((first?, second?), (1, 2));
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
#[must_use = "dropping a reply tells the asker that there is none"]
pub struct Reply<R: 'static> {
    /// One that leads nowhere for a told message: `Option` has room in it, and this is written as the others are.
    key: ReplyKey<Answer<R>>,
    /// Where the message was sent.
    trail: Trail,
}

impl<R> Reply<R> {
    pub(crate) fn to(key: ReplyKey<Answer<R>>) -> Self {
        Self {
            key,
            trail: Trail::NONE,
        }
    }

    /// The reply of a told message.
    pub(crate) fn none() -> Self {
        Self {
            key: ReplyKey::nowhere(),
            trail: Trail::NONE,
        }
    }

    /// The same, of a message that was sent there.
    #[inline]
    pub(crate) fn sent(mut self, trail: Trail) -> Self {
        self.trail = trail;
        self
    }

    /// Whether somebody waits for the answer, as far as this thread can tell: false for a told message and for an ask
    /// whose asker, on this shard, has given up.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.key.is_wanted()
    }

    /// When its asker stops waiting, a little later than the asker itself has it.
    ///
    /// `None` for a told message, for an ask without a limit, and for one whose limit is more than an hour away. Asks
    /// that the handler makes have no more time anyway; work that is done elsewhere may be given what is left.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.note().and_then(AskNote::deadline)
    }

    /// What is known of the ask.
    pub(crate) fn note(&self) -> Option<AskNote> {
        (!self.is_told()).then(|| self.key.note())
    }

    /// Whether the message was told, not asked.
    pub(crate) fn is_told(&self) -> bool {
        self.key.is_nowhere()
    }

    /// Answers.
    #[inline]
    pub fn send(mut self, value: R) {
        if !self.is_told() {
            self.key.take().send(Ok(value));
        }
    }
}

impl<R> Drop for Reply<R> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_told() {
            refuse(self.key.take());
        }
    }
}

/// The messages of an actor, seen from the framework.
#[doc(hidden)]
pub trait Carries {
    /// What a message carries besides its arguments.
    ///
    /// Asked for seldom: before an asynchronous handler begins, when an asker has given up, and when something went wrong.
    fn carried(&self) -> Carried<'_>;
}

/// What a message carries besides its arguments, where it lies.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Carried<'a> {
    reply: &'a dyn AnyReply,
    /// Its method's name. A thin pointer: each actor that waits keeps one.
    method: &'static &'static str,
    /// The handler may give the reply away.
    is_deferred: bool,
}

/// Of a message whose handler returns the answer.
#[must_use]
pub fn carried<'a>(reply: &'a dyn AnyReply, method: &'static &'static str) -> Carried<'a> {
    Carried {
        reply,
        method,
        is_deferred: false,
    }
}

/// Of a message whose handler takes the reply.
#[must_use]
pub fn carried_deferred<'a>(reply: &'a dyn AnyReply, method: &'static &'static str) -> Carried<'a> {
    Carried {
        is_deferred: true,
        ..carried(reply, method)
    }
}

impl<'a> Carried<'a> {
    pub(crate) fn reply(self) -> &'a dyn AnyReply {
        self.reply
    }

    pub(crate) fn method(self) -> &'static &'static str {
        self.method
    }

    pub(crate) fn is_deferred(self) -> bool {
        self.is_deferred
    }
}

impl fmt::Debug for Carried<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carried").finish_non_exhaustive()
    }
}

/// The reply of a message, whatever its type.
pub trait AnyReply {
    /// What is known of the ask; `None` if the message was told.
    #[doc(hidden)]
    fn note(&self) -> Option<AskNote>;

    /// As [`Reply::is_wanted`].
    #[doc(hidden)]
    fn is_wanted(&self) -> bool;

    /// Where the message was sent.
    #[doc(hidden)]
    fn trail(&self) -> Trail;
}

impl<R> AnyReply for Reply<R> {
    fn note(&self) -> Option<AskNote> {
        Self::note(self)
    }

    fn is_wanted(&self) -> bool {
        Self::is_wanted(self)
    }

    fn trail(&self) -> Trail {
        self.trail
    }
}

#[cold]
fn refuse<R: 'static>(key: ReplyKey<Answer<R>>) {
    // A fate that was announced goes first: what unwinds then is the drop of a value beside the reply.
    let failure = match fate::current() {
        Some(Fate::Stopped) => Failure::Stopped,
        Some(Fate::Overflowed) => Failure::Overflowed,
        Some(Fate::Killed) => Failure::Killed,
        Some(Fate::NotStarted) => Failure::NotStarted(fate::cause()),
        None if std::thread::panicking() => Failure::Panicked(Box::new(
            fate::last_panic().unwrap_or_else(PanicReport::unknown),
        )),
        None => Failure::NoReply,
    };
    key.send(Err(failure));
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("told", &self.is_told())
            .finish_non_exhaustive()
    }
}

// With the feature `tracing` it carries the number of a span, too.
const _: () = assert!(size_of::<Option<Reply<String>>>() == 16 + size_of::<Trail>());
