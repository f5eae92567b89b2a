//! What is told, and how.

use std::cell::Cell;
use std::num::NonZeroU64;

use tracing::level_filters::LevelFilter;
use tracing::span::Id;
use tracing::{Level, Span, dispatcher, field, span};

use crate::actor::Actor;
use crate::life::contain;
use crate::mailbox::Mailbox;
use crate::reply::Carries;

/// Whether somebody may listen: what `tracing` itself looks at first.
#[inline]
pub(crate) fn is_on() -> bool {
    Level::DEBUG <= LevelFilter::current()
}

/// The span in which a message was sent.
#[derive(Clone, Copy, Debug)]
#[expect(
    unnameable_types,
    reason = "in the signature of a hidden method of a public trait"
)]
pub struct Trail(Option<NonZeroU64>);

impl Trail {
    /// No span.
    pub(crate) const NONE: Self = Self(None);

    /// The span that the calling thread is in.
    #[inline]
    pub(crate) fn here() -> Self {
        if is_on() {
            Self::of_current()
        } else {
            Self::NONE
        }
    }

    #[cold]
    fn of_current() -> Self {
        let mut trail = Self::NONE;
        contain(|| {
            trail.0 = dispatcher::get_default(|subscriber| {
                let current = subscriber.current_span();
                if current.is_known() {
                    current.id().map(Id::into_non_zero_u64)
                } else {
                    // A subscriber need not keep count of that. Then it is the handler, if one runs.
                    HANDLED.get()
                }
            });
        });
        trail
    }
}

thread_local! {
    /// The span of the innermost handler on the stack.
    static HANDLED: Cell<Option<NonZeroU64>> = const { Cell::new(None) };
    /// The span of a message that is not handled at once, on its way to where it is.
    static PUT_OFF: Cell<Handling> = const { Cell::new(Handling(None)) };
}

/// The span of a message that is being handled, if anyone wants it.
#[derive(Debug, Default)]
pub(crate) struct Handling(Option<Box<Span>>);

impl Handling {
    #[inline]
    pub(crate) fn begin<A: Actor>(mailbox: &Mailbox<A>, message: &A::LocalMsg) -> Self {
        if is_on() {
            Self::open(mailbox, message)
        } else {
            Self(None)
        }
    }

    /// As [`Handling::begin`], of a message whose span may have been made and put off just before.
    #[inline]
    pub(crate) fn go_on<A: Actor>(mailbox: &Mailbox<A>, message: &A::LocalMsg) -> Self {
        match PUT_OFF.take() {
            Self(None) => Self::begin(mailbox, message),
            begun => begun,
        }
    }

    /// Whoever handles the message goes on with its span.
    #[inline]
    pub(crate) fn put_off(self) {
        if self.0.is_some() {
            PUT_OFF.set(self);
        }
    }

    #[cold]
    fn open<A: Actor>(mailbox: &Mailbox<A>, message: &A::LocalMsg) -> Self {
        let mut span = Span::none();
        contain(|| {
            span = span!(
                target: "greenroom::message",
                parent: None,
                Level::DEBUG,
                "message",
                actor = A::NAME,
                id = %mailbox.actor_id(),
                name = mailbox.names().first().map(field::display),
                method = *message.carried().method(),
                shard = greenroom_runtime::current_shard().map(|shard| shard.index()),
            );
        });
        // Nothing is kept of a span that nobody wants.
        if span.is_disabled() {
            return Self(None);
        }
        let Trail(sender) = message.carried().reply().trail();
        contain(|| {
            span.follows_from(sender.map(Id::from_non_zero_u64));
        });
        Self(Some(Box::new(span)))
    }

    /// The handler that runs has another message besides its own: its span follows from the sender of that, too.
    pub(crate) fn join<A: Actor>(message: &A::LocalMsg) {
        let Some(span) = HANDLED.get().filter(|_| is_on()) else {
            return;
        };
        if let Trail(Some(sender)) = message.carried().reply().trail() {
            let [span, sender] = [span, sender].map(Id::from_non_zero_u64);
            contain(|| {
                dispatcher::get_default(|subscriber| {
                    subscriber.record_follows_from(&span, &sender);
                });
            });
        }
    }

    /// Runs a piece of the handler.
    #[inline]
    pub(crate) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        let _until_here = self.0.as_deref().map(Entered::new);
        run()
    }
}

impl Drop for Handling {
    #[inline]
    fn drop(&mut self) {
        if let Some(span) = self.0.take() {
            contain(|| drop(span));
        }
    }
}

/// Within a span.
struct Entered<'a> {
    span: &'a Span,
    outer: Option<NonZeroU64>,
}

impl<'a> Entered<'a> {
    #[cold]
    fn new(span: &'a Span) -> Self {
        let number = span.id().as_ref().map(Id::into_non_zero_u64);
        let outer = HANDLED.replace(number);
        contain(|| {
            span.with_subscriber(|(id, subscriber)| subscriber.enter(id));
        });
        Self { span, outer }
    }
}

impl Drop for Entered<'_> {
    #[cold]
    fn drop(&mut self) {
        HANDLED.set(self.outer);
        contain(|| {
            self.span
                .with_subscriber(|(id, subscriber)| subscriber.exit(id));
        });
    }
}
