//! Streams whose items are messages.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use futures_core::Stream;
use greenroom_runtime::mesh::ResidentId;

use super::handle::Errand;
use super::store::{Brought, ErrandId};
use super::work::{begin, bring};
use crate::actor::Actor;
use crate::address::{FromPort, SameShard};
use crate::call::{Method, ReplyMode};
use crate::context::Ctx;
use crate::mailbox::Mailbox;
use crate::reply::Reply;
use crate::route::Aimed;
use crate::way::{Suits, Way};

impl<A: Actor> Ctx<A> {
    /// Makes a message to the actor itself of each item of a stream: `ctx.forward(stream, |me, item| me.method(item))`.
    ///
    /// One item is on its way at a time: the stream is asked for the next one when the actor has taken the last one from its
    /// mailbox, so a stream never runs ahead of its actor. Items stand in the mailbox as any message does, behind what was
    /// accepted before; into a full mailbox goes one.
    ///
    /// Where items are `Result`s they are passed on as they are, and the stream goes on until it ends; a method that wants
    /// no more after an error calls [`Errand::cancel`]. Of the end the actor hears with [`Forward::on_end`].
    ///
    /// The stream is polled by a task of this shard and need not be `Send`, nor need its items. It is dropped when it has
    /// ended, and with the actor, before the actor's state; from a stop on no items are taken.
    ///
    /// # Panics
    /// A panic in the stream or in `call` ends the actor, like one in a handler.
    ///
    /// # Examples
    /// ```
    /// use futures_util::stream;
    /// use greenroom::prelude::*;
    ///
    /// #[derive(Default)]
    /// struct Sum { total: u64, done: Option<Reply<u64>> }
    ///
    /// #[actor]
    /// impl Sum {
    ///     pub fn of(&mut self, numbers: Vec<u64>, reply: Reply<u64>, ctx: &mut Ctx<Self>) {
    ///         self.done = Some(reply);
    ///         ctx.forward(stream::iter(numbers), |me, number| me.add(number))
    ///             .on_end(|me| me.finish());
    ///     }
    ///     #[message]
    ///     fn add(&mut self, number: u64) { self.total += number; }
    ///     #[message]
    ///     fn finish(&mut self) {
    ///         if let Some(done) = self.done.take() { done.send(self.total); }
    ///     }
    /// }
    ///
    /// let system = System::start(1)?;
    /// system.block_on(async {
    ///     let sum = system.spawn_on(0, Sum::default).await?;
    ///     assert_eq!(sum.of(vec![1, 2, 3]).await?, 6);
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn forward<S: Stream + 'static>(
        &self,
        stream: S,
        mut call: impl FnMut(A::Client<Compose<A>>, S::Item) -> Composed<A> + 'static,
    ) -> Forward<A> {
        let end: End<A> = Rc::default();
        let at_end = end.clone();
        let errand = begin(self.mailbox_id(), move |id, errand| async move {
            {
                let mut stream = pin!(stream);
                while let Some(item) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
                    let Composed(message) = call(client::<A>(), item);
                    if !hand_over(id, errand, message).await {
                        return;
                    }
                }
            }
            let end = at_end.borrow_mut().take();
            if let Some(end) = end {
                let Composed(message) = end(client::<A>());
                hand_over(id, errand, message).await;
            }
        });
        Forward { errand, end }
    }
}

type End<A> = Rc<RefCell<Option<Box<dyn FnOnce(<A as Actor>::Client<Compose<A>>) -> Composed<A>>>>>;

fn client<A: Actor>() -> A::Client<Compose<A>> {
    A::Client::from_port(Compose { actor: PhantomData })
}

/// Brings a message and waits until it was taken; false if no more are wanted.
async fn hand_over<A: Actor>(
    id: ResidentId<Mailbox<A>>,
    errand: ErrandId,
    message: A::LocalMsg,
) -> bool {
    bring(id, errand, Brought::Message(message)).await
        && poll_fn(|cx| {
            let polled = id.visit(|mailbox| mailbox.errands().poll_taken(errand, cx));
            polled.map_or(Poll::Ready(false), |polled| {
                polled.map(|taken| taken.is_ok())
            })
        })
        .await
}

/// A stream that is being forwarded: an [`Errand`], and a say in what follows.
pub struct Forward<A: Actor> {
    errand: Errand,
    end: End<A>,
}

impl<A: Actor> Forward<A> {
    /// Makes one more message when the stream has ended by itself, behind its last item.
    ///
    /// Said in the same breath as [`Ctx::forward`]; said after the stream has ended, it comes too late.
    pub fn on_end(
        self,
        call: impl FnOnce(A::Client<Compose<A>>) -> Composed<A> + 'static,
    ) -> Errand {
        let earlier = self.end.replace(Some(Box::new(call)));
        drop(earlier);
        self.errand
    }

    /// Without a notice of the end.
    #[must_use]
    pub fn into_errand(self) -> Errand {
        self.errand
    }

    /// See [`Errand::cancel`].
    pub fn cancel(&self) -> bool {
        self.errand.cancel()
    }

    /// See [`Errand::is_active`].
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.errand.is_active()
    }
}

impl<A: Actor> fmt::Debug for Forward<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Forward").field(&self.errand).finish()
    }
}

/// The way of a call that is only made, not sent: whoever asked for it sends it.
pub struct Compose<A: Actor> {
    actor: PhantomData<*const A>,
}

/// A call for [`Ctx::forward`], which makes a message of it.
#[must_use = "give it back to whoever asked for it"]
pub struct Composed<A: Actor>(A::LocalMsg);

impl<A: Actor> Way for Compose<A> {
    type Actor = A;
    type Env = A::LocalMsg;
    type Call<M: ReplyMode, Args, B> = Composed<A>;

    fn call<M: ReplyMode, Args: Suits<Self>, B: Method<Self, M, Args>>(
        self,
        args: Args,
    ) -> Composed<A> {
        Composed(B::envelope(args, Reply::none()))
    }
}

#[diagnostic::do_not_recommend]
impl<A: Actor> SameShard for Compose<A> {
    fn itself(self) -> Self {
        self
    }
}

impl<A: Actor, Args: 'static> Suits<Compose<A>> for Args {}

#[diagnostic::do_not_recommend]
impl<A: Actor> Aimed for Compose<A> {}

impl<A: Actor> Clone for Compose<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Actor> Copy for Compose<A> {}

impl<A: Actor> fmt::Debug for Compose<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compose({})", A::NAME)
    }
}

impl<A: Actor> fmt::Debug for Composed<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Composed({})", A::NAME)
    }
}
