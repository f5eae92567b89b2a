//! How long an ask waits, and who keeps the time.
//!
//! | limit | where the ask waits | who keeps the time |
//! |---|---|---|
//! | the system's, or inherited and a second or more away | in its slot | the slot's shard, which looks now and then |
//! | any other, or in line for room | on a shard | a timer of that shard |
//! | the system's, or a second or more away | on no shard | the actor's shard, which looks now and then |
//! | any other | on no shard | a timer of the actor's shard |

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::current_shard;
use greenroom_runtime::mesh::{Due, usual_limit};
use greenroom_runtime::time::{Instant, Sleep, sleep_until};

use crate::error::{LimitSource, Timeout};
use crate::handling;
use crate::outside::Allowed;

/// From here on a limit may pass a little later than it says.
const FAR: Duration = Duration::from_secs(1);

/// What the caller said.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// Nothing: the system's limit holds.
    Usual,
    Never,
    Within(Duration),
    Until(Instant),
}

/// A limit and where it comes from.
#[derive(Clone, Copy, Debug)]
#[expect(
    unnameable_types,
    reason = "in the signature of a hidden method of a sealed trait"
)]
pub struct Allowance {
    limit: Duration,
    source: LimitSource,
}

impl Allowance {
    pub(crate) fn usual(limit: Duration) -> Self {
        Self {
            limit,
            source: LimitSource::System,
        }
    }

    pub(crate) fn passed(self, sent: bool) -> Timeout {
        Timeout {
            limit: self.limit,
            source: self.source,
            sent,
        }
    }
}

/// The time an ask has.
pub(super) enum Term {
    /// Not reckoned yet: an ask that is answered at once never does.
    Said(Limit),
    Endless,
    /// The slot is watched by its shard.
    Watched(Allowance),
    /// Nobody keeps the time yet.
    Set(Instant, Allowance),
    /// On a shard: its own timer.
    Here(Sleep, Allowance),
    /// Elsewhere: a timer of the actor's shard.
    Outside(oneshot::Receiver<()>, Allowance),
    /// There is nobody left to keep time: the answer, or its absence, will come at once.
    Lost,
}

impl Term {
    /// For a slot that is opened on this shard now.
    #[inline]
    pub(super) fn due(&mut self) -> Due {
        if let Self::Said(Limit::Usual) = self
            && handling::deadline().is_none()
        {
            *self = match usual_limit() {
                None => Self::Endless,
                Some(limit) => Self::Watched(Allowance::usual(limit)),
            };
            return Due::usual();
        }
        self.reckoned_due()
    }

    fn reckoned_due(&mut self) -> Due {
        self.reckon();
        match *self {
            Self::Set(at, allowance) if allowance.source != LimitSource::Call && is_far(at) => {
                *self = Self::Watched(allowance);
                Due::watched(at)
            }
            Self::Set(at, _) => Due::noted(at),
            Self::Here(ref sleep, _) => Due::noted(sleep.deadline()),
            _ => Due::NEVER,
        }
    }

    /// For a message that leaves this thread on the long way: what whoever answers is to know, and what the actor's
    /// shard is to keep.
    pub(super) fn due_outside(&mut self) -> (Due, Allowed) {
        if current_shard().is_none()
            && let Self::Said(Limit::Usual) = self
        {
            // The actor's shard knows the limit of its system.
            return (Due::NEVER, Allowed::Usual);
        }
        self.reckon();
        match *self {
            Self::Set(at, allowance) if current_shard().is_none() && is_far(at) => {
                *self = Self::Endless;
                (Due::noted(at), Allowed::Until(at, allowance))
            }
            Self::Set(at, _) => (Due::noted(at), Allowed::Anything),
            Self::Here(ref sleep, _) => (Due::noted(sleep.deadline()), Allowed::Anything),
            _ => (Due::NEVER, Allowed::Anything),
        }
    }

    /// Works out the moment, once: the smaller one of what was said and what the handler that asks has left itself.
    fn reckon(&mut self) {
        let Self::Said(said) = *self else {
            return;
        };
        let now = Instant::after(Duration::ZERO);
        let own = match said {
            Limit::Never => None,
            Limit::Usual => usual_limit().map(|limit| (now + limit, limit, LimitSource::System)),
            Limit::Within(limit) => Some((now + limit, limit, LimitSource::Call)),
            Limit::Until(at) => Some((at, at - now, LimitSource::Call)),
        };
        let inherited = handling::deadline().map(|at| (at, at - now, LimitSource::Inherited));
        // Of two equal ones the call's own.
        let smaller = own.into_iter().chain(inherited).min_by_key(|(at, ..)| *at);
        *self = match smaller {
            None => Self::Endless,
            Some((at, limit, source)) => Self::Set(at, Allowance { limit, source }),
        };
    }

    /// What to say when the slot's shard has found the time to be over.
    pub(super) fn watched(&self) -> Allowance {
        match *self {
            Self::Watched(allowance) => allowance,
            _ => unreachable!("a slot that is not watched is never overdue"),
        }
    }

    /// How many clones of its task's waker it keeps.
    pub(super) fn wakers(&self) -> usize {
        usize::from(matches!(self, Self::Here(..)))
    }

    /// Whether somebody else keeps the time of an ask that waits in its slot.
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        matches!(self, Self::Watched(_) | Self::Endless)
    }

    /// Keeps the time of an ask that waits.
    #[cold]
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        start_outside: impl FnOnce(Duration) -> oneshot::Receiver<()>,
    ) -> Poll<Allowance> {
        let on_shard = current_shard().is_some();
        if !on_shard && matches!(self, Self::Said(Limit::Usual)) {
            return Poll::Pending;
        }
        self.reckon();
        match *self {
            Self::Set(at, allowance) if on_shard => *self = Self::Here(sleep_until(at), allowance),
            Self::Set(at, allowance) => {
                *self = Self::Outside(start_outside(at.remaining()), allowance);
            }
            Self::Here(ref sleep, allowance) if !on_shard => {
                *self = Self::Outside(start_outside(sleep.deadline().remaining()), allowance);
            }
            _ => {}
        }
        match self {
            Self::Here(sleep, allowance) => pin!(sleep).poll(cx).map(|()| *allowance),
            Self::Outside(fired, allowance) => match Pin::new(fired).poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(())) => Poll::Ready(*allowance),
                Poll::Ready(Err(oneshot::Canceled)) => {
                    *self = Self::Lost;
                    Poll::Pending
                }
            },
            _ => Poll::Pending,
        }
    }
}

fn is_far(at: Instant) -> bool {
    at.remaining() >= FAR
}
