//! Nothing is told.

use crate::actor::Actor;
use crate::mailbox::Mailbox;

/// Whether somebody may listen.
#[inline]
pub(crate) const fn is_on() -> bool {
    false
}

/// Would be the span in which a message was sent.
#[derive(Clone, Copy, Debug)]
#[expect(
    unnameable_types,
    reason = "in the signature of a hidden method of a public trait"
)]
pub struct Trail;

impl Trail {
    /// No span.
    pub(crate) const NONE: Self = Self;

    #[inline]
    pub(crate) fn here() -> Self {
        Self
    }
}

/// Would be the span of a message that is being handled.
#[derive(Debug, Default)]
pub(crate) struct Handling;

impl Handling {
    #[inline]
    pub(crate) fn begin<A: Actor>(_: &Mailbox<A>, _: &A::LocalMsg) -> Self {
        Self
    }

    #[inline]
    pub(crate) fn go_on<A: Actor>(_: &Mailbox<A>, _: &A::LocalMsg) -> Self {
        Self
    }

    #[inline]
    pub(crate) fn join<A: Actor>(_: &A::LocalMsg) {}

    #[inline]
    pub(crate) fn put_off(self) {}

    #[inline]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(crate) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        run()
    }
}
