//! Why a name was not given or not found.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_runtime::ShardId;

/// A name and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub(super) name: Arc<str>,
    pub(super) shard: ShardId,
    pub(super) actor: Option<&'static str>,
    pub(super) type_name: Option<&'static str>,
    pub(super) number: Option<(u16, u64)>,
}

impl Named {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What kind of actor has it; `None` while that actor is being made.
    #[must_use]
    pub fn actor(&self) -> Option<&'static str> {
        self.actor
    }

    /// The shard of the actor.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.shard
    }
}

/// The holder, without the name.
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shard = self.shard;
        match (self.actor, self.number) {
            (Some(actor), Some((number, generation))) => {
                write!(f, "{actor} {number}.{generation} on {shard}")
            }
            _ => write!(f, "an actor that is starting on {shard}"),
        }
    }
}

/// Why an actor did not get a name.
#[derive(Clone, PartialEq, Eq)]
pub struct RegisterError {
    pub(super) name: Arc<str>,
    pub(super) actor: &'static str,
    pub(super) kind: RegisterErrorKind,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum RegisterErrorKind {
    Taken(Box<Named>),
    Ended,
}

impl RegisterError {
    /// The name that was asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who holds the name, if that is why.
    #[must_use]
    pub fn holder(&self) -> Option<&Named> {
        match &self.kind {
            RegisterErrorKind::Taken(holder) => Some(holder),
            RegisterErrorKind::Ended => None,
        }
    }

    /// Whether another actor holds the name.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.holder().is_some()
    }

    /// Whether the actor that was to have the name has ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.kind == RegisterErrorKind::Ended
    }
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, actor, kind } = self;
        match kind {
            RegisterErrorKind::Taken(holder) => {
                write!(
                    f,
                    "{actor} cannot be named {name:?}: the name is held by {holder}"
                )
            }
            RegisterErrorKind::Ended => {
                write!(f, "{actor} cannot be named {name:?}: the actor has stopped")
            }
        }
    }
}

impl fmt::Debug for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RegisterError {}

/// Why a name led to no actor of the wanted type.
#[derive(Clone, PartialEq, Eq)]
pub struct LookupError {
    pub(super) name: Arc<str>,
    pub(super) wanted: &'static str,
    pub(super) wanted_type: &'static str,
    pub(super) kind: LookupErrorKind,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum LookupErrorKind {
    Free,
    Claimed,
    WrongType(Box<Named>),
    Elapsed(Duration),
}

impl LookupError {
    /// The name that was looked up.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether no actor has the name, or not yet.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, LookupErrorKind::Free | LookupErrorKind::Claimed)
    }

    /// Whether an actor of another type has the name.
    #[must_use]
    pub fn is_wrong_type(&self) -> bool {
        self.holder().is_some()
    }

    /// Whether no actor got the name within the limit.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.kind, LookupErrorKind::Elapsed(_))
    }

    /// Who holds the name, if it is an actor of another type.
    #[must_use]
    pub fn holder(&self) -> Option<&Named> {
        match &self.kind {
            LookupErrorKind::WrongType(holder) => Some(holder),
            _ => None,
        }
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, wanted, .. } = self;
        match &self.kind {
            LookupErrorKind::Free => write!(f, "no actor is named {name:?}"),
            LookupErrorKind::Claimed => {
                write!(
                    f,
                    "the actor named {name:?} is still being made: `lookup_within` waits for it"
                )
            }
            LookupErrorKind::Elapsed(limit) => {
                write!(f, "no actor was named {name:?} within {limit:?}")
            }
            LookupErrorKind::WrongType(holder) => {
                write!(
                    f,
                    "{name:?} is not a {wanted}: the name is held by {holder}"
                )?;
                match holder.type_name {
                    // Two types of one name: say which.
                    Some(found) if holder.actor == Some(*wanted) => {
                        write!(f, " ({found}, not {})", self.wanted_type)
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

impl fmt::Debug for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for LookupError {}
