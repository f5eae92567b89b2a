//! How an actor ended, and who hears of it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_runtime::ShardId;

use crate::error::StartFailure;
use crate::fate::PanicReport;

/// The identity of an actor: unique in the process, for ever, and of no type.
///
/// It stays the same when the actor is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    shard: u16,
    number: u64,
}

impl ActorId {
    pub(crate) fn new((shard, number): (u16, u64)) -> Self {
        Self { shard, number }
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.shard, self.number)
    }
}

#[cfg(feature = "json")]
impl serde::Serialize for ActorId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why an actor ended, or one of its incarnations.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// It was asked to stop, and handled what it had been sent before.
    Stopped,
    /// Its system shut down, and it stopped.
    Shutdown,
    /// It was killed, or its shard ended under it.
    Killed,
    /// It was asked to stop and had not done so when the grace was over.
    GraceExpired(Arc<Overdue>),
    /// A handler or hook panicked.
    Panicked(Arc<PanicReport>),
    /// It declared an error that it cannot go on with, by [`Ctx::fail`](crate::Ctx::fail).
    Failed(Arc<dyn Error + Send + Sync>),
    /// Its start hook refused to go on.
    StartFailed(Arc<StartFailure>),
    /// An actor it was linked with ended. Of a long row of ends that followed from each other, the last sixteen are told, and the first.
    Linked(Arc<Down>),
    /// One of its children failed too often. Of a long row, as above.
    ChildFailed(Arc<Down>),
    /// It failed too often to be restarted again.
    RestartLimit(Arc<RestartLimit>),
    /// It had ended before anybody asked.
    Unknown,
}

impl ExitReason {
    /// Whether the actor ended because something went wrong, and not because it was asked to.
    ///
    /// [`Killed`](Self::Killed) and [`Unknown`](Self::Unknown) are not what a restart can mend, but no orderly end either:
    /// links pass them on.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Stopped | Self::Shutdown | Self::Killed | Self::Unknown => false,
            Self::GraceExpired(_)
            | Self::Panicked(_)
            | Self::Failed(_)
            | Self::StartFailed(_)
            | Self::Linked(_)
            | Self::ChildFailed(_)
            | Self::RestartLimit(_) => true,
        }
    }

    /// Whether the actor stopped as it was asked to.
    #[must_use]
    pub fn is_orderly(&self) -> bool {
        matches!(self, Self::Stopped | Self::Shutdown)
    }

    /// The panic it ended by, at the bottom of whatever followed from it.
    #[must_use]
    pub fn panic(&self) -> Option<&PanicReport> {
        match self.first() {
            Self::Panicked(report) => Some(report),
            _ => None,
        }
    }

    /// The error it ended by, at the bottom of whatever followed from it.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match self.first() {
            Self::Failed(error) => Some(&**error),
            _ => None,
        }
    }

    /// What it followed from, and what that followed from, and so on; begins with itself.
    fn row(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |reason| match reason {
            Self::Linked(down) | Self::ChildFailed(down) => Some(&down.reason),
            Self::RestartLimit(limit) => Some(&limit.last),
            _ => None,
        })
    }

    /// The one that followed from no other.
    fn first(&self) -> &Self {
        self.row().last().unwrap_or(self)
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("it stopped"),
            Self::Shutdown => f.write_str("it stopped with its system"),
            Self::Killed => f.write_str("it was killed"),
            Self::GraceExpired(overdue) => write!(f, "{overdue}"),
            Self::Panicked(report) => write!(f, "it panicked: {report}"),
            Self::Failed(error) => write!(f, "it failed: {error}"),
            Self::StartFailed(failure) => write!(f, "it did not start: {failure}"),
            Self::Linked(down) => write!(f, "it was linked with an actor that ended: {down}"),
            Self::ChildFailed(down) => write!(f, "a child failed: {down}"),
            Self::RestartLimit(limit) => write!(f, "{limit}"),
            Self::Unknown => {
                f.write_str("it had ended before anybody asked, and why is not known any more")
            }
        }
    }
}

/// What an actor did when the grace of its stop was over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Overdue {
    /// How long it had.
    pub grace: Duration,
    /// The handler it waited in, if it was in one.
    pub method: Option<&'static str>,
    /// For how long it had waited there.
    pub since: Option<Duration>,
}

impl fmt::Display for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it was killed as it did not stop within {:?}",
            self.grace
        )?;
        if let (Some(method), Some(since)) = (self.method, self.since) {
            write!(f, ": it had been in `{method}` for {since:?}")?;
        }
        Ok(())
    }
}

/// How often an actor failed before its supervisor gave up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestartLimit {
    /// How many restarts were allowed.
    pub restarts: u32,
    /// In which time.
    pub within: Duration,
    /// What happened the last time.
    pub last: ExitReason,
}

impl fmt::Display for RestartLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it was restarted {} times within {:?} and failed again: {}",
            self.restarts, self.within, self.last
        )
    }
}

/// The end of an actor, as those who watch it are told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Down {
    /// Which actor.
    pub id: ActorId,
    /// The name of its type, or what `#[actor(name = ..)]` says.
    pub name: &'static str,
    /// The shard it lived on, where that is known.
    pub shard: Option<ShardId>,
    /// Why it ended.
    pub reason: ExitReason,
}

/// How many reasons a reason tells that it followed from.
///
/// A failure may go through thousands of actors. Whoever shows or drops the reason of the last one goes through all that it
/// has, on the stack.
const ROW_MAX: usize = 16;

impl Down {
    /// The same end as what another one follows from.
    pub(crate) fn into_cause(mut self) -> Arc<Self> {
        if self.reason.row().count() > ROW_MAX {
            self.reason = self.reason.first().clone();
        }
        Arc::new(self)
    }
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(shard) = self.shard {
            write!(f, " on {shard}")?;
        }
        write!(f, " (actor {}): {}", self.id, self.reason)
    }
}

/// The end of a child, or of one of its incarnations, as its parent is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildExit {
    /// Which child, and why.
    pub down: Down,
    /// What became of it.
    pub outcome: ChildOutcome,
}

/// What follows the end of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildOutcome {
    /// It is gone.
    Ended,
    /// It is restarted, under the same address and with the messages that wait.
    Restarts,
    /// It is gone as it failed too often, and its parent fails with it.
    Escalates,
}

impl fmt::Display for ChildExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            ChildOutcome::Ended => "",
            ChildOutcome::Restarts => "; it is restarted",
            ChildOutcome::Escalates => "; its parent fails with it",
        };
        write!(f, "{}{outcome}", self.down)
    }
}
