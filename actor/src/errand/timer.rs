//! Messages that an actor sends to itself later.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use greenroom_runtime::mesh::ResidentId;
use greenroom_runtime::time::{Instant, MissedTicks};

use super::handle::Errand;
use crate::actor::Actor;
use crate::address::{FromPort, SameShard};
use crate::call::{Method, ReplyMode};
use crate::context::Ctx;
use crate::mailbox::Mailbox;
use crate::observe::Trail;
use crate::reply::Reply;
use crate::route::Aimed;
use crate::way::{Suits, Way};

impl<A: Actor> Ctx<A> {
    /// Calls one of the actor's methods after a while: `ctx.after(d).method(args)`.
    ///
    /// The call is a message to the actor itself. It is told, and stands in the mailbox behind what was accepted before it
    /// was due. It enters a full mailbox too, since it does not come in a burst: there is one of it. A private method is
    /// called so if it is marked `#[message]`. It ends with the
    /// incarnation of the actor, never keeps it alive, and from a stop on is not sent any more.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use std::time::Duration;
    ///
    /// struct Egg;
    ///
    /// #[actor]
    /// impl Egg {
    ///     #[on(started)]
    ///     fn boil(&mut self, ctx: &mut Ctx<Self>) {
    ///         ctx.after(Duration::from_millis(3)).done("soft");
    ///     }
    ///     #[message]
    ///     fn done(&mut self, how: &'static str, ctx: &mut Ctx<Self>) {
    ///         assert_eq!(how, "soft");
    ///         ctx.stop();
    ///     }
    /// }
    ///
    /// let system = System::start(1)?;
    /// system.block_on(async {
    ///     let egg = system.spawn_on(0, || Egg).await?;
    ///     Addr::stopped(egg).await;
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    #[must_use = "name the method: `ctx.after(..).method(..)`"]
    pub fn after(&self, delay: Duration) -> A::Client<After<A>> {
        A::Client::from_port(After {
            id: self.mailbox_id(),
            delay,
        })
    }

    /// Calls one of the actor's methods again and again: `ctx.every(d).method(args)`.
    ///
    /// The first call is due after one period. Each is a message as that of [`Ctx::after`]; the arguments are cloned for it.
    /// At most one call of a timer waits in the mailbox. Those whose time passes meanwhile are left out, and later ones keep
    /// to the grid; see [`Ctx::every_with`] for other ways.
    ///
    /// # Panics
    /// If the period is shorter than a millisecond, the resolution of timers.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use std::time::Duration;
    ///
    /// #[derive(Default)]
    /// struct Pulse { beats: u32 }
    ///
    /// #[actor]
    /// impl Pulse {
    ///     #[on(started)]
    ///     fn begin(&mut self, ctx: &mut Ctx<Self>) {
    ///         ctx.every(Duration::from_millis(1)).beat(2);
    ///     }
    ///     #[message]
    ///     fn beat(&mut self, by: u32, ctx: &mut Ctx<Self>) {
    ///         self.beats += by;
    ///         if self.beats == 6 { ctx.stop() }
    ///     }
    /// }
    ///
    /// let system = System::start(1)?;
    /// system.block_on(async {
    ///     let pulse = system.spawn_on(0, Pulse::default).await?;
    ///     Addr::stopped(pulse).await;
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    #[track_caller]
    #[must_use = "name the method: `ctx.every(..).method(..)`"]
    pub fn every(&self, period: Duration) -> A::Client<Every<A>> {
        self.every_with(period, MissedTicks::default())
    }

    /// As [`Ctx::every`], with a say in what becomes of calls whose time passes while one waits in the mailbox.
    ///
    /// # Panics
    /// If the period is shorter than a millisecond, the resolution of timers.
    #[track_caller]
    #[must_use = "name the method: `ctx.every_with(..).method(..)`"]
    pub fn every_with(&self, period: Duration, missed: MissedTicks) -> A::Client<Every<A>> {
        assert!(
            period >= Duration::from_millis(1),
            "the period of a timer is at least 1 ms, not {period:?}"
        );
        A::Client::from_port(Every {
            id: self.mailbox_id(),
            period,
            missed,
        })
    }
}

/// The way of [`Ctx::after`].
pub struct After<A: Actor> {
    id: ResidentId<Mailbox<A>>,
    delay: Duration,
}

/// The way of [`Ctx::every`].
pub struct Every<A: Actor> {
    id: ResidentId<Mailbox<A>>,
    period: Duration,
    missed: MissedTicks,
}

/// A call that is made again and again.
pub(super) struct Repeated<A: Actor> {
    make: Box<dyn Fn() -> A::LocalMsg>,
    period: Duration,
    missed: MissedTicks,
    /// When its next call is due, or when the one that waits in the mailbox was.
    due: Cell<Instant>,
}

impl<A: Actor> Repeated<A> {
    pub(super) fn due(&self) -> Instant {
        self.due.get()
    }

    /// A call was taken: when the next one is due.
    pub(super) fn advance(&self) -> Instant {
        let next = self
            .missed
            .next(self.due.get(), Instant::now(), self.period);
        self.due.set(next);
        next
    }

    pub(super) fn message(&self) -> A::LocalMsg {
        (self.make)()
    }
}

impl<A: Actor> Way for After<A> {
    type Actor = A;
    type Env = A::LocalMsg;
    type Call<M: ReplyMode, Args, B> = Errand;

    fn call<M: ReplyMode, Args: Suits<Self>, B: Method<Self, M, Args>>(self, args: Args) -> Errand {
        let message = B::envelope(args, Reply::none().sent(Trail::here()));
        let at = Instant::now() + self.delay;
        let begun = self.id.visit_with(message, |mailbox, message| {
            mailbox.errands().begin_after(mailbox, at, message)
        });
        begun.unwrap_or_else(|_| unreachable!("a context is used while its actor is there"))
    }
}

impl<A: Actor> Way for Every<A> {
    type Actor = A;
    type Env = A::LocalMsg;
    type Call<M: ReplyMode, Args, B> = Errand;

    fn call<M: ReplyMode, Args: Suits<Self>, B: Method<Self, M, Args>>(self, args: Args) -> Errand {
        let make = move || {
            let args = args
                .again()
                .expect("a repeated call has arguments to clone");
            B::envelope(args, Reply::none())
        };
        let repeated = Repeated {
            make: Box::new(make),
            period: self.period,
            missed: self.missed,
            due: Cell::new(Instant::now() + self.period),
        };
        let begun = self.id.visit_with(repeated, |mailbox, repeated| {
            mailbox.errands().begin_every(mailbox, repeated)
        });
        begun.unwrap_or_else(|_| unreachable!("a context is used while its actor is there"))
    }
}

#[diagnostic::do_not_recommend]
impl<A: Actor> SameShard for After<A> {
    fn itself(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<A: Actor> SameShard for Every<A> {
    fn itself(self) -> Self {
        self
    }
}

impl<A: Actor, Args: 'static> Suits<After<A>> for Args {}

#[diagnostic::do_not_recommend]
impl<A: Actor> Aimed for After<A> {}

#[diagnostic::do_not_recommend]
impl<A: Actor> Aimed for Every<A> {}

impl<A: Actor, Args: Clone + 'static> Suits<Every<A>> for Args {
    fn again(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<A: Actor> Clone for After<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Actor> Copy for After<A> {}

impl<A: Actor> Clone for Every<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Actor> Copy for Every<A> {}

impl<A: Actor> fmt::Debug for After<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("After")
            .field("actor", &A::NAME)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

impl<A: Actor> fmt::Debug for Every<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Every")
            .field("actor", &A::NAME)
            .field("period", &self.period)
            .field("missed", &self.missed)
            .finish_non_exhaustive()
    }
}
