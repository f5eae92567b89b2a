//! Everything generated code names. Not for people; it changes with the macros.

use std::marker::PhantomData;

use greenroom_runtime::mesh::{self, AskNote};

pub use ::core;
pub use greenroom_runtime::mesh::{CrossShard, Lane};
pub use greenroom_runtime::time::MissedTicks;

pub use crate::actor::{Actor, Overflow};
pub use crate::address::{FromPort, Port, Refused, SameShard};
pub use crate::answering::{
    Answering, AnsweringFlat, OneOf2, OneOf3, OneOf4, OneOf5, OneOf6, OneOf7, OneOf8, Show,
    ShowDisplay, ShowNothing, answer, answer_flat, answering, answering_flat, resident,
};
pub use crate::bulk::{
    Replies, SharedAnswer, answer_all, answer_all_flat, gather, gather_answered,
};
pub use crate::call::{Answers, Call, Flat, IsResult, Message, Method, Plain, ReplyMode, Urgent};
pub use crate::context::Ctx;
pub use crate::errand::Every;
pub use crate::error::StartFailure;
pub use crate::life::{ChildExit, Down, ToldError};
pub use crate::mailbox::{Mailbox, Parcel};
pub use crate::outside::Outside;
pub use crate::place::Place;
pub use crate::reply::{AnyReply, Carried, Carries, Reply, carried, carried_deferred};
pub use crate::route::{Aimed, HasKeys};
pub use crate::way::{Suits, Way};

use crate::observe::Trail;

/// What an actor or a method is called.
pub type Name = &'static str;

/// What a method of a client makes on a way.
pub type CallOn<W, M, A, B> = <W as Way>::Call<M, A, B>;

/// A message where none of its kind comes.
#[cold]
pub fn unexpected() -> ! {
    unreachable!("a message is handled where it is expected")
}

/// What runs the functions under `#[greenroom::main]` and `#[greenroom::test]`.
pub mod entry {
    pub use greenroom_runtime::Backend;

    pub use crate::entry::{main, test};
    pub use crate::system::System;
}

/// What generated code names for each message: shorter to print, to resolve and to read. Names that start like this are
/// reserved, so none of the user's is hidden.
pub mod short {
    pub use super::{
        CallOn as __Call, Flat as __Flat, Message as __Message, Name as __Name, Plain as __Plain,
        Reply as __Reply, Suits as __Suits, answer as __answer, carried as __carried,
    };
}

pub use self::given::*;

/// Names that generated code may need and cannot expect the user's module to have.
mod given {
    pub use ::core::clone::Clone;
    pub use ::core::convert::{From, Into};
    pub use ::core::future::{Future, pending};
    pub use ::core::marker::Copy;
    pub use ::core::option::Option::{self, None, Some};
    pub use ::core::primitive::{bool, str, u64, usize};
    pub use ::core::result::Result;
    pub use ::std::boxed::Box as Boxed;

    pub use crate::address::Remote;
    pub use crate::call::{DynCall, DynCallOf, is_enough, message_fits};
    pub use crate::life::{Concurrent, ReadingPhase, Share, overlap};
}

/// Stands in the type of a call that is never made: its message broke a rule, which was reported.
#[derive(Debug)]
pub struct Unmade<K>(PhantomData<fn() -> K>);

impl<M: ReplyMode, A, K> Message<M, A> for Unmade<K> {
    type Of = K;

    const NAME: &'static str = "";
    const ANSWERS_AT_ONCE: bool = false;

    fn build(_: A, _: Reply<M::Reply>) -> K {
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

/// A message field that stays on its shard: the type itself, in a place that no lint takes for the user's. The field of a
/// message is as visible as the actor, and its type may be private.
pub type Near<T> = T;

/// The reply of a message, proved to be `Send` in the same way.
pub type CrossReply<R> = Cross<Reply<R>>;

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

impl<R> AnyReply for Cross<Reply<R>> {
    fn note(&self) -> Option<AskNote> {
        self.0.peek().note()
    }

    fn is_wanted(&self) -> bool {
        self.0.peek().is_wanted()
    }

    fn trail(&self) -> Trail {
        AnyReply::trail(self.0.peek())
    }
}

/// The hash of an argument marked `#[key]`, which decides on the instance of a sharded actor.
#[inline]
pub fn key_hash<K: core::hash::Hash>(key: &K) -> u64 {
    crate::placement::hash_of(key)
}

/// The client of an `#[every(..)]` timer.
#[track_caller]
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
