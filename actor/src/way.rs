//! What becomes of a call of a generated client.
//!
//! Most ways are ports: they lead to an actor, and a method makes a [`Call`] of its arguments. A context has ways of its own.

use crate::actor::Actor;
use crate::address::{Here, Port, Remote, sealed};
use crate::call::{Call, Method, ReplyMode};
use crate::route::Aimed;

/// What a generated client makes of its methods. Sealed: the ways to an actor, see [`Port`], and those of a
/// [`Ctx`](crate::Ctx) to its own actor.
pub trait Way: Copy + sealed::Sealed {
    /// The actor at the end of the way.
    type Actor: Actor;
    /// What travels on it.
    type Env: From<<Self::Actor as Actor>::Msg>;
    /// What a method of the client returns.
    type Call<M: ReplyMode, A, B>;

    /// Makes that of a method's arguments.
    #[doc(hidden)]
    fn call<M: ReplyMode, A: Suits<Self>, B: Method<Self, M, A>>(
        self,
        args: A,
    ) -> Self::Call<M, A, B>;
}

/// Arguments that can be passed on a way. All can, but a call that is repeated needs them again.
///
/// Hidden, or the page of every type in every crate that uses this one would list that it can.
#[diagnostic::on_unimplemented(
    message = "the arguments of a repeated call are cloned for each tick",
    label = "`{Self}` is not `Clone`",
    note = "let the method take what can be cloned, or use `ctx.after(..)` once for each time"
)]
#[doc(hidden)]
pub trait Suits<W>: Sized + 'static {
    /// The same arguments again, for a call that is repeated.
    #[doc(hidden)]
    fn again(&self) -> Option<Self> {
        None
    }
}

impl<P: Port, A: 'static> Suits<P> for A {}

impl<A: Actor> Aimed for Remote<A> {}

impl<A: Actor> Aimed for Here<A> {}

impl<A: Actor> Way for Remote<A> {
    type Actor = A;
    type Env = A::Msg;
    type Call<M: ReplyMode, Args, B> = Call<Self, M, Args, B>;

    #[inline]
    fn call<M: ReplyMode, Args: Suits<Self>, B: Method<Self, M, Args>>(
        self,
        args: Args,
    ) -> Call<Self, M, Args, B> {
        Call::new(self, args)
    }
}

impl<A: Actor> Way for Here<A> {
    type Actor = A;
    type Env = A::LocalMsg;
    type Call<M: ReplyMode, Args, B> = Call<Self, M, Args, B>;

    #[inline]
    fn call<M: ReplyMode, Args: Suits<Self>, B: Method<Self, M, Args>>(
        self,
        args: Args,
    ) -> Call<Self, M, Args, B> {
        Call::new(self, args)
    }
}
