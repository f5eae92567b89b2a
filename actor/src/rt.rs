//! Everything generated code names. Not for people; it changes with the macros.

use greenroom_runtime::mesh;

pub use ::core;
pub use greenroom_runtime::mesh::CrossShard;
pub use greenroom_runtime::time::MissedTicks;

pub use crate::actor::Actor;
pub use crate::address::{FromPort, Outside, Place, Port, Refused, SameShard};
pub use crate::call::{Answers, Call, Flat, IsResult, Method, Plain, ReplyMode};
pub use crate::context::Ctx;
pub use crate::errand::Every;
pub use crate::error::StartFailure;
pub use crate::mailbox::{Mailbox, Parcel};
pub use crate::reply::Reply;
pub use crate::way::{Suits, Way};

use crate::registry::Registry;

/// Stands in the type of a call that is never made: its message broke a rule, which was reported.
#[derive(Debug)]
pub enum Unmade {}

impl<W: Way, M: ReplyMode, A> Method<W, M, A> for Unmade {
    const NAME: &'static str = "";
    const ANSWERS_AT_ONCE: bool = false;

    fn build(_: A, _: Reply<M::Reply>) -> W::Env {
        unreachable!("what broke a rule does not compile")
    }
}

/// A message field, proved to be `Send` where it is wrapped.
#[derive(Debug)]
pub struct Cross<T>(mesh::Cross<T>);

impl<T> Cross<T> {
    /// Wraps an argument.
    #[inline]
    pub fn new(value: T) -> Self
    where
        T: CrossShard,
    {
        Self(mesh::Cross::new(value))
    }

    /// Takes the value out, on the actor's shard.
    #[inline]
    pub fn get(self) -> T {
        self.0.get()
    }
}

impl<R> Cross<Reply<R>> {
    /// Wraps a reply, which is `Send` if its value is.
    #[inline]
    pub fn reply(reply: Reply<R>) -> Self
    where
        R: CrossShard,
    {
        Self(mesh::Cross::new(reply))
    }
}

/// Answers with a handler's value.
#[inline]
pub fn answer<R>(reply: Reply<R>, value: R) {
    reply.send(value);
}

/// Answers with a handler's `Result`; the error of a told message, for which nobody waits, is counted.
#[inline]
pub fn answer_flat<A: Actor, R: IsResult>(reply: Reply<R>, value: R, ctx: &mut Ctx<A>) {
    let _ = ctx;
    if reply.is_told() && value.is_failure() {
        Registry::with(Registry::count_told_error);
    }
    reply.send(value);
}

/// The client of an `#[every(..)]` timer.
pub fn every<A: Actor>(
    ctx: &mut Ctx<A>,
    period: core::time::Duration,
    missed: MissedTicks,
) -> A::Client<Every<A>> {
    ctx.every_with(period, missed)
}

/// The context, as the type the handler names.
#[inline]
pub fn ctx_is<A: Actor>(ctx: &mut Ctx<A>) -> &mut Ctx<A> {
    ctx
}

/// What a start hook may return.
#[diagnostic::on_unimplemented(
    message = "a `started` hook returns `()` or `Result<(), _>`, not `{Self}`",
    note = "the error of the result says why the actor does not start; it must implement `Display`"
)]
pub trait IntoStart {
    /// As an outcome.
    fn into_start(self) -> Result<(), StartFailure>;
}

impl IntoStart for () {
    fn into_start(self) -> Result<(), StartFailure> {
        Ok(())
    }
}

impl<E: std::fmt::Display> IntoStart for Result<(), E> {
    fn into_start(self) -> Result<(), StartFailure> {
        self.map_err(StartFailure::new)
    }
}
