//! What an actor is to the framework.

use crate::address::FromPort;
use crate::context::Ctx;
use crate::error::StartFailure;
use crate::life::{ChildExit, Down, ReadingPhase, Share, ToldError};
use crate::mailbox::Mailbox;
use crate::reply::Carries;
use crate::way::Way;

/// What becomes of a message that finds no room: the option `overflow` of `#[actor]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Its sender waits.
    Wait,
    /// It is refused.
    Reject,
    /// It takes the place of the oldest, which is dropped.
    DropOldest,
    /// It is dropped.
    DropNewest,
}

/// A type whose methods are messages. Implemented by `#[actor]`, never by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    note = "put `#[actor]` on an inherent `impl` block of this type"
)]
pub trait Actor: Sized + 'static {
    // The types are hidden because nobody can name them: the page of an actor shows what is meant for its reader.
    /// The messages that may come from other shards.
    #[doc(hidden)]
    type Msg: Carries + Send + 'static;
    /// All messages.
    #[doc(hidden)]
    type LocalMsg: Carries + From<Self::Msg> + 'static;
    /// The calls, generic over the way to the actor.
    #[doc(hidden)]
    type Client<W: Way<Actor = Self>>: FromPort<W>;
    /// What the actor is called in errors.
    const NAME: &'static str;
    /// How many messages its mailbox holds; `usize::MAX` is without a bound.
    ///
    /// None is not possible, however it is spelled:
    ///
    /// ```compile_fail,E0080
    /// use greenroom::prelude::*;
    ///
    /// const ROOM: usize = 0;
    /// struct Full;
    ///
    /// #[actor(mailbox = ROOM)]
    /// impl Full {
    ///     pub fn ping(&self) {}
    /// }
    ///
    /// let system = System::start(1)?;
    /// system.block_on(system.spawn_on(0, || Full))?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    const MAILBOX: usize = 256;
    /// What becomes of a message that finds the mailbox full.
    const OVERFLOW: Overflow = Overflow::Wait;

    /// Whether it has an `#[on(started)]` hook.
    #[doc(hidden)]
    const HEARS_START: bool = false;
    /// Whether it has `#[every(..)]` timers.
    #[doc(hidden)]
    const HAS_TIMERS: bool = false;
    /// Whether it has an `#[on(down)]` hook.
    #[doc(hidden)]
    const HEARS_DOWNS: bool = false;
    /// Whether it has an `#[on(child_exit)]` hook.
    #[doc(hidden)]
    const HEARS_CHILD_EXITS: bool = false;
    /// Whether it has an `#[on(error)]` hook.
    #[doc(hidden)]
    const HEARS_ERRORS: bool = false;

    /// Handles a message whose handler is synchronous, or gives it back.
    #[doc(hidden)]
    fn dispatch_now(
        &mut self,
        message: Self::LocalMsg,
        ctx: &mut Ctx<Self>,
    ) -> Option<Self::LocalMsg>;

    /// The future of a message whose handler is asynchronous.
    #[doc(hidden)]
    fn dispatch(
        &mut self,
        message: Self::LocalMsg,
        ctx: &mut Ctx<Self>,
    ) -> impl Future<Output = ()> {
        let _ = (message, ctx);
        std::future::ready(())
    }

    /// Begins to handle messages side by side, if the message is one of that kind, or gives it back.
    #[doc(hidden)]
    fn overlap(
        mailbox: &Mailbox<Self>,
        message: Self::LocalMsg,
        share: &mut Share,
    ) -> Result<impl Future<Output = ReadingPhase>, Self::LocalMsg> {
        let _ = (mailbox, share);
        Err::<std::future::Ready<ReadingPhase>, _>(message)
    }

    /// The `#[on(started)]` hook.
    #[doc(hidden)]
    fn started(&mut self, ctx: &mut Ctx<Self>) -> impl Future<Output = Result<(), StartFailure>> {
        let _ = ctx;
        std::future::ready(Ok(()))
    }

    /// The `#[on(down)]` hook.
    #[doc(hidden)]
    fn down(&mut self, down: Down, ctx: &mut Ctx<Self>) -> impl Future<Output = ()> {
        let _ = (down, ctx);
        std::future::ready(())
    }

    /// The `#[on(child_exit)]` hook.
    #[doc(hidden)]
    fn child_exit(&mut self, exit: ChildExit, ctx: &mut Ctx<Self>) -> impl Future<Output = ()> {
        let _ = (exit, ctx);
        std::future::ready(())
    }

    /// The `#[on(error)]` hook.
    #[doc(hidden)]
    fn told_error(&mut self, error: ToldError, ctx: &mut Ctx<Self>) -> impl Future<Output = ()> {
        let _ = (error, ctx);
        std::future::ready(())
    }

    /// Begins the timers of `#[every(..)]`.
    #[doc(hidden)]
    fn begin_timers(ctx: &mut Ctx<Self>) {
        let _ = ctx;
    }

    /// The `#[on(stopping)]` hook.
    #[doc(hidden)]
    fn stopping(&mut self, ctx: &mut Ctx<Self>) -> impl Future<Output = ()> {
        let _ = ctx;
        std::future::ready(())
    }
}
