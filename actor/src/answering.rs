//! From what a handler returns to the answer.
//!
//! A synchronous handler has returned when [`answer`] or [`answer_flat`] is called. An asynchronous one is a future:
//! [`Answering`] and [`AnsweringFlat`] poll it and then do the same. An actor has one such future for each of its asynchronous
//! messages, and a message becomes one of them: [`OneOf2`] and its like hold whichever it is. So generated code has no `async`
//! block around all handlers, which would cost the compiler as much as a third of the rest, and keep the message in the
//! actor's task beside what the handler makes of it.
//!
//! # Panics
//! A reply is out of its place while its handler is polled: a panic unwinds through it, and the asker hears of it.
//!
//! # Drop
//! Dropped before the answer, the handler is cut off at its await point, and the reply tells its asker why.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom_runtime::mesh::ResidentId;
use pin_project_lite::pin_project;

use crate::actor::Actor;
use crate::call::IsResult;
use crate::context::Ctx;
use crate::life::{Event, ToldError, note_told_error};
use crate::mailbox::Mailbox;
use crate::registry::Registry;
use crate::reply::Reply;

/// Answers with a handler's value.
#[inline]
pub fn answer<R>(reply: Reply<R>, value: R) {
    reply.send(value);
}

/// Answers with a handler's `Result`; the error of a told message, for which nobody waits, is counted, and goes to the
/// hook of the actor.
#[inline]
pub fn answer_flat<A: Actor, R: IsResult>(
    show: fn(&R) -> Option<String>,
    reply: Reply<R>,
    value: R,
    ctx: &Ctx<A>,
    method: &'static str,
) {
    settle(show, reply, value, ctx.resident(), method);
}

#[inline]
fn settle<A: Actor, R: IsResult>(
    show: fn(&R) -> Option<String>,
    reply: Reply<R>,
    value: R,
    actor: ResidentId<Mailbox<A>>,
    method: &'static str,
) {
    if value.is_failure() {
        failed(show, reply, value, actor, method);
    } else {
        reply.send(value);
    }
}

#[cold]
fn failed<A: Actor, R: IsResult>(
    show: fn(&R) -> Option<String>,
    reply: Reply<R>,
    value: R,
    actor: ResidentId<Mailbox<A>>,
    method: &'static str,
) {
    actor.visit(|mailbox| mailbox.tally().err());
    if reply.is_told() {
        drop(reply);
        told_error(show, value, actor, method);
    } else {
        reply.send(value);
    }
}

fn told_error<A: Actor, R: IsResult>(
    show: fn(&R) -> Option<String>,
    value: R,
    actor: ResidentId<Mailbox<A>>,
    method: &'static str,
) {
    Registry::with(Registry::count_told_error);
    let is_traced = cfg!(feature = "tracing");
    let text = (A::HEARS_ERRORS || is_traced)
        .then(|| show(&value))
        .flatten();
    let Err(error) = value.into_result() else {
        return;
    };
    note_told_error(A::NAME, method, text.as_deref());
    if A::HEARS_ERRORS {
        let error = ToldError::new(method, text, Box::new(error));
        actor.visit(|mailbox| mailbox.push_event(Event::Error(error)));
    }
}

/// The actor of a context, for when the handler's own future holds the context.
#[inline]
pub fn resident<A: Actor>(ctx: &Ctx<A>) -> ResidentId<Mailbox<A>> {
    ctx.resident()
}

pin_project! {
    /// A handler whose value is the answer.
    pub struct Answering<F: Future>
    where
        F::Output: 'static,
    {
        #[pin]
        handler: F,
        // Nothing while the handler is polled, and once it has answered.
        reply: Option<Reply<F::Output>>,
    }
}

/// Answers with what the handler returns in the end.
#[inline]
pub fn answering<F: Future<Output: 'static>>(reply: Reply<F::Output>, handler: F) -> Answering<F> {
    Answering {
        handler,
        reply: Some(reply),
    }
}

impl<F: Future<Output: 'static>> fmt::Debug for Answering<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering")
            .field("reply", &self.reply)
            .finish_non_exhaustive()
    }
}

impl<F: Future<Output: 'static>> Future for Answering<F> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        polled(this.handler, this.reply, cx, answer)
    }
}

pin_project! {
    /// A handler whose `Result` is the answer.
    pub struct AnsweringFlat<A: Actor, F: Future>
    where
        F::Output: 'static,
    {
        #[pin]
        handler: F,
        reply: Option<Reply<F::Output>>,
        settle: Settle<A, F::Output>,
        show: fn(&F::Output) -> Option<String>,
        actor: ResidentId<Mailbox<A>>,
        method: &'static str,
    }
}

/// How it is answered, as a value: a future that asked for [`IsResult`] itself would report what is none once more.
type Settle<A, R> = fn(fn(&R) -> Option<String>, Reply<R>, R, ResidentId<Mailbox<A>>, &'static str);

/// As [`answering`], of a handler that returns a `Result`.
#[inline]
pub fn answering_flat<A: Actor, F: Future<Output: IsResult>>(
    show: fn(&F::Output) -> Option<String>,
    reply: Reply<F::Output>,
    handler: F,
    actor: ResidentId<Mailbox<A>>,
    method: &'static str,
) -> AnsweringFlat<A, F> {
    AnsweringFlat {
        handler,
        reply: Some(reply),
        settle: settle::<A, F::Output>,
        show,
        actor,
        method,
    }
}

impl<A: Actor, F: Future<Output: 'static>> fmt::Debug for AnsweringFlat<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnsweringFlat")
            .field("reply", &self.reply)
            .finish_non_exhaustive()
    }
}

impl<A: Actor, F: Future<Output: 'static>> Future for AnsweringFlat<A, F> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        polled(this.handler, this.reply, cx, |reply, value| {
            (this.settle)(*this.show, reply, value, *this.actor, this.method);
        })
    }
}

/// Polls a handler, and answers if it is done.
#[inline]
fn polled<F: Future>(
    handler: Pin<&mut F>,
    place: &mut Option<Reply<F::Output>>,
    cx: &mut Context<'_>,
    answer: impl FnOnce(Reply<F::Output>, F::Output),
) -> Poll<()> {
    let reply = place.take();
    match handler.poll(cx) {
        Poll::Pending => {
            *place = reply;
            Poll::Pending
        }
        Poll::Ready(value) => {
            if let Some(reply) = reply {
                answer(reply, value);
            }
            Poll::Ready(())
        }
    }
}

/// The future of one of several handlers.
macro_rules! one_of {
    ($($name:ident $projected:ident [$($handler:ident)+])+) => {$(
        pin_project! {
            #[doc = concat!("One of ", stringify!($($handler),+), ": each is the future of one handler.")]
            #[allow(missing_docs, reason = "what a variant is, the docs of its enum say")]
            #[project = $projected]
            pub enum $name<$($handler),+> {
                $(
                    #[doc = concat!("It is ", stringify!($handler), ".")]
                    $handler {
                        #[pin]
                        of: $handler,
                    },
                )+
            }
        }

        impl<$($handler: Future<Output = ()>),+> Future for $name<$($handler),+> {
            type Output = ();

            #[inline]
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                match self.project() {
                    $($projected::$handler { of } => of.poll(cx),)+
                }
            }
        }

        impl<$($handler),+> fmt::Debug for $name<$($handler),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )+};
}

one_of! {
    OneOf2 Projected2 [A B]
    OneOf3 Projected3 [A B C]
    OneOf4 Projected4 [A B C D]
    OneOf5 Projected5 [A B C D E]
    OneOf6 Projected6 [A B C D E F]
    OneOf7 Projected7 [A B C D E F G]
    OneOf8 Projected8 [A B C D E F G H]
}

/// A type of which a handler returns values, whose errors are to be shown if they can be. The method that suits it best is
/// found by auto-reference: asking for a trait here would answer a type that is no `Result` with one more error.
#[derive(Debug)]
pub struct Show<R>(PhantomData<fn() -> R>);

impl<R> Show<R> {
    /// Of a value that was returned.
    #[inline]
    pub fn of(_: &R) -> Self {
        Self(PhantomData)
    }

    /// Of what a future will return.
    #[inline]
    pub fn of_future(_: &impl Future<Output = R>) -> Self {
        Self(PhantomData)
    }
}

/// Shows an error that implements `Display`.
pub trait ShowDisplay<R> {
    /// What makes the text.
    fn shower(&self) -> fn(&R) -> Option<String>;
}

impl<T, E: fmt::Display> ShowDisplay<Result<T, E>> for &Show<Result<T, E>> {
    #[inline]
    fn shower(&self) -> fn(&Result<T, E>) -> Option<String> {
        |returned| returned.as_ref().err().map(ToString::to_string)
    }
}

/// Shows nothing of anything else.
pub trait ShowNothing<R> {
    /// What makes no text.
    fn shower(&self) -> fn(&R) -> Option<String>;
}

impl<R> ShowNothing<R> for Show<R> {
    #[inline]
    fn shower(&self) -> fn(&R) -> Option<String> {
        |_| None
    }
}
