//! Futures that run beside their actor, as tasks of its own.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use greenroom_runtime::mesh::ResidentId;

use super::handle::Errand;
use super::store::{Brought, ErrandId};
use crate::actor::Actor;
use crate::context::Ctx;
use crate::fate::{self, Fate};
use crate::life::contain;
use crate::mailbox::Mailbox;
use crate::observe::{DeadLetterReason, report};

impl<A: Actor> Ctx<A> {
    /// Runs a future beside the actor, and `then` with the actor and the output when it is done.
    ///
    /// The actor goes on with other messages meanwhile. The output comes back like a message, behind what was accepted
    /// before, and is handled by itself: `then` has the actor to itself, as a handler does. Where it needs the context
    /// as well, see [`Ctx::pipe_with`].
    ///
    /// The future is a task of this shard and need not be `Send`. It ends with the actor: it is dropped then, before the
    /// actor's state is, and `then` is not called. From a stop on an output is not taken any more.
    ///
    /// # Panics
    /// A panic in the future or in `then` ends the actor, like one in a handler.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use std::time::Duration;
    ///
    /// struct Cache { value: Option<u32>, loading: Vec<Reply<u32>> }
    ///
    /// async fn load() -> u32 {
    ///     greenroom::runtime::time::sleep(Duration::from_millis(2)).await;
    ///     7
    /// }
    ///
    /// #[actor]
    /// impl Cache {
    ///     pub fn get(&mut self, reply: Reply<u32>, ctx: &mut Ctx<Self>) {
    ///         match self.value {
    ///             Some(value) => reply.send(value),
    ///             None => {
    ///                 self.loading.push(reply);
    ///                 if self.loading.len() == 1 {
    ///                     ctx.pipe(load(), |me, value| {
    ///                         me.value = Some(value);
    ///                         me.loading.drain(..).for_each(|reply| reply.send(value));
    ///                     });
    ///                 }
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// let system = System::start(1)?;
    /// system.block_on(async {
    ///     let cache = system.spawn_on(0, || Cache { value: None, loading: Vec::new() }).await?;
    ///     let (one, other) = futures_util::join!(cache.get().into_future(), cache.get().into_future());
    ///     assert_eq!((one?, other?), (7, 7));
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn pipe<F>(&self, future: F, then: impl FnOnce(&mut A, F::Output) + 'static) -> Errand
    where
        F: IntoFuture<IntoFuture: 'static, Output: 'static>,
    {
        self.pipe_with(future, |actor, output, _| then(actor, output))
    }

    /// As [`Ctx::pipe`], with the context for what is done with the output.
    pub fn pipe_with<F>(
        &self,
        future: F,
        then: impl FnOnce(&mut A, F::Output, &mut Ctx<A>) + 'static,
    ) -> Errand
    where
        F: IntoFuture<IntoFuture: 'static, Output: 'static>,
    {
        let future = future.into_future();
        begin(self.mailbox_id(), move |id, errand| async move {
            let output = future.await;
            let call = Brought::Call(Box::new(move |actor: &mut A, ctx: &mut Ctx<A>| {
                then(actor, output, ctx);
            }));
            bring(id, errand, call).await;
        })
    }

    /// Runs a future beside the actor, until it is done or the actor ends.
    ///
    /// It is a task of this shard and need not be `Send`. Nobody waits for it; what is to come back from it is told to
    /// [`Ctx::addr`], or [piped](Ctx::pipe). When the actor ends, however it ends, the future is dropped after the stopping
    /// hook and before the actor's state, unless it is the future itself that ends the actor: then it is dropped when it
    /// next waits.
    ///
    /// # Panics
    /// A panic in the future ends the actor, like one in a handler: work that an actor has begun is part of it. A task
    /// that may fail by itself is spawned with [`greenroom_runtime::spawn`], and its handle tells how it went.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    /// use greenroom::runtime::sync::mpsc;
    ///
    /// /// Writes lines, without making those wait who have some.
    /// struct Log { lines: mpsc::Sender<String> }
    ///
    /// #[actor]
    /// impl Log {
    ///     #[on(started)]
    ///     fn begin(&mut self, ctx: &mut Ctx<Self>) {
    ///         let (lines, mut written) = mpsc::channel(16);
    ///         self.lines = lines;
    ///         ctx.spawn(async move {
    ///             while let Some(line) = written.recv().await { println!("{line}"); }
    ///         });
    ///     }
    ///     pub fn line(&self, line: String) -> bool { self.lines.try_send(line).is_ok() }
    /// }
    /// ```
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) -> Errand {
        begin(self.mailbox_id(), |_, _| future)
    }
}

/// Begins a task. It removes its errand when it has ended by itself; a panic in it ends the actor.
pub(super) fn begin<A: Actor, F>(
    id: ResidentId<Mailbox<A>>,
    make: impl FnOnce(ResidentId<Mailbox<A>>, ErrandId) -> F,
) -> Errand
where
    F: Future<Output = ()> + 'static,
{
    let begun = id.visit(|mailbox| mailbox.errands().begin_task());
    let (errand, handle) = begun.expect("a context is used while its actor is there");
    let work = make(id, errand);
    let task = greenroom_runtime::spawn(async move {
        let ended = caught(work).await;
        id.visit(|mailbox| {
            mailbox.errands().over(errand);
            if let Err(report) = ended {
                mailbox.fail_beside(report);
            }
        });
    });
    let unwanted = id.visit_with(task, |mailbox, task| {
        mailbox.errands().running(errand, task);
    });
    if let Err(task) = unwanted {
        task.abort();
    }
    handle
}

/// Brings something into the mailbox once what was brought before is taken; false if it is not wanted any more.
pub(super) async fn bring<A: Actor>(
    id: ResidentId<Mailbox<A>>,
    errand: ErrandId,
    brings: Brought<A>,
) -> bool {
    let mut brings = Some(brings);
    let brought = poll_fn(|cx| {
        let polled = id.visit(|mailbox| {
            mailbox
                .errands()
                .poll_bring(mailbox, errand, &mut brings, cx)
        });
        polled.map_or(std::task::Poll::Ready(false), |polled| {
            polled.map(|brought| brought.is_ok())
        })
    });
    let brought = brought.await;
    if let Some(Brought::Message(message)) = brings {
        // Its actor has stopped meanwhile.
        report::<A>(&message, DeadLetterReason::Stopped);
        fate::with(Fate::Stopped, || contain(|| drop(message)));
    }
    brought
}

/// The end of a future, which is dropped then: a panic in it is an error.
pub(crate) async fn caught(future: impl Future<Output = ()>) -> Result<(), fate::PanicReport> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(payload) => std::task::Poll::Ready(Err(fate::report(payload))),
        },
    )
    .await
}
