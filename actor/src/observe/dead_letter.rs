//! Messages that reached nobody.

use std::fmt;
use std::sync::Arc;

use greenroom_runtime::ShardId;

use crate::actor::Actor;
use crate::fate::{self, Fate};
use crate::life::{ExitReason, contain};
use crate::registry::Registry;
use crate::reply::Carries;

/// A message that reached no actor, or was given up by one that ended.
///
/// Whoever asked it has an error, and whoever told it perhaps nothing: this is where such a message is heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The actor it was meant for, by the name of its type.
    pub actor: &'static str,
    /// The method it would have called.
    pub method: &'static str,
    /// The shard of the actor.
    pub shard: Option<ShardId>,
    /// Why nobody has handled it.
    pub reason: DeadLetterReason,
}

/// Why a message was not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// The actor had ended, or was about to, when it arrived.
    Late,
    /// The actor stopped before it came to it.
    Stopped,
    /// The actor was killed, or its shard ended.
    Killed,
    /// The actor failed before: a handler panicked, or something it depends on has failed.
    Failed,
    /// There was no room for it, and nobody who waited for room.
    Overflow,
}

impl DeadLetterReason {
    /// Of what is dropped, and tells its asker so.
    pub(crate) fn of_fate(fate: Fate) -> Self {
        match fate {
            Fate::Overflowed => Self::Overflow,
            Fate::Killed => Self::Killed,
            Fate::Stopped | Fate::NotStarted => Self::Late,
        }
    }

    /// Of what an actor had accepted when it ended for this reason.
    pub(crate) fn of_end(reason: &ExitReason) -> Self {
        match reason {
            ExitReason::Stopped | ExitReason::Shutdown => Self::Stopped,
            ExitReason::Killed | ExitReason::GraceExpired(_) => Self::Killed,
            _ => Self::Failed,
        }
    }
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Late => "it came after the end of the actor",
            Self::Stopped => "the actor stopped before",
            Self::Killed => "the actor was killed before",
            Self::Failed => "the actor failed before",
            Self::Overflow => "there was no room",
        })
    }
}

impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            actor,
            method,
            shard,
            reason,
        } = self;
        write!(f, "{actor}::{method}")?;
        if let Some(shard) = shard {
            write!(f, " on {shard}")?;
        }
        write!(f, " was not handled: {reason}")
    }
}

/// What a system calls for each dead letter.
#[derive(Clone)]
pub(crate) struct DeadLetterHook(Arc<dyn Fn(&DeadLetter) + Send + Sync>);

impl DeadLetterHook {
    pub(crate) fn new(hook: impl Fn(&DeadLetter) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl fmt::Debug for DeadLetterHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeadLetterHook")
    }
}

/// Counts a message that nobody handles, and tells the hook. On the actor's shard, while nothing is borrowed.
#[cold]
pub(crate) fn report<A: Actor>(message: &A::LocalMsg, reason: DeadLetterReason) {
    report_call::<A>(message.carried().method(), reason);
}

/// Drops a message that nobody handles, which is a dead letter. Its asker hears of this fate.
pub(crate) fn dispose<A: Actor>(message: A::LocalMsg, fate: Fate) {
    report::<A>(&message, DeadLetterReason::of_fate(fate));
    fate::with(fate, || contain(|| drop(message)));
}

/// As [`report`], of a message that was not built.
pub(crate) fn report_call<A: Actor>(method: &'static str, reason: DeadLetterReason) {
    // A shard that has ended counts nothing any more.
    let hook = Registry::with(|registry| {
        registry.count_dead_letters(1);
        registry.tally::<A>().dead_letter();
        registry.dead_letter_hook()
    });
    if let Some(DeadLetterHook(hook)) = hook.flatten() {
        let letter = DeadLetter {
            actor: A::NAME,
            method,
            shard: greenroom_runtime::current_shard(),
            reason,
        };
        contain(|| hook(&letter));
    }
}
