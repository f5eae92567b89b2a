//! Several futures driven together: one call to all instances of a sharded actor.
//!
//! All calls are under way from the first poll; each answer is kept until the last one is there. Dropped, every call that is
//! still under way is dropped, which means what it means for a single one.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom_runtime::ShardId;

use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::call::{Call, Method, ReplyMode, Tell};
use crate::error::SendError;
use crate::placement::Sharded;

/// The future of [`Sharded::map`]: the outputs of several calls, in the order of their shards.
///
/// # Cancel safety
/// Dropping it drops every call that has no answer yet, as dropping an [`crate::Ask`] does: handlers whose message was
/// sent run, and their answers are dropped.
#[must_use = "calls are made when the future is awaited"]
pub struct Gather<F: Future> {
    calls: Vec<InFlight<F>>,
}

enum InFlight<F: Future> {
    Pending(F),
    Done(F::Output),
    /// Its output was given out.
    Taken,
}

impl<F: Future + Unpin> Gather<F> {
    fn new(calls: impl Iterator<Item = F>) -> Self {
        Self {
            calls: calls.map(InFlight::Pending).collect(),
        }
    }
}

impl<F: Future> Unpin for Gather<F> {}

impl<F: Future + Unpin> Future for Gather<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<F::Output>> {
        let mut all_done = true;
        for call in &mut self.calls {
            if let InFlight::Pending(future) = call {
                match Pin::new(future).poll(cx) {
                    Poll::Ready(output) => *call = InFlight::Done(output),
                    Poll::Pending => all_done = false,
                }
            }
        }
        if !all_done {
            return Poll::Pending;
        }
        let outputs =
            self.calls
                .iter_mut()
                .map(|call| match std::mem::replace(call, InFlight::Taken) {
                    InFlight::Done(output) => output,
                    InFlight::Pending(_) | InFlight::Taken => {
                        panic!("`Gather` was polled after it had ended")
                    }
                });
        Poll::Ready(outputs.collect())
    }
}

impl<F: Future> fmt::Debug for Gather<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = |call: &&InFlight<F>| matches!(call, InFlight::Pending(_));
        f.debug_struct("Gather")
            .field("calls", &self.calls.len())
            .field("pending", &self.calls.iter().filter(pending).count())
            .finish()
    }
}

impl<A: Actor> Sharded<A> {
    /// Makes one call to every instance, and waits for all of them.
    ///
    /// All calls are on their way at once: a message for each shard. The outputs come in the order of the shards, each
    /// with its own error. The call may have its own limit: `|hits| hits.total().timeout(limit)`.
    ///
    /// # Cancel safety
    /// See [`Gather`].
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    ///
    /// struct Part { number: usize }
    ///
    /// #[actor]
    /// impl Part {
    ///     pub fn number(&self) -> usize { self.number }
    /// }
    ///
    /// let system = System::start(2)?;
    /// system.block_on(async {
    ///     let parts = system.spawn_sharded(|shard| Part { number: shard.index() }).await?;
    ///     let numbers: Vec<Result<usize, CallError>> = parts.map(|part| part.number()).await;
    ///     assert_eq!(numbers.len(), 2);
    ///     assert_eq!(parts.map_reduce(|part| part.number(), 0, |sum, number| sum + number).await?, 1);
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn map<C>(&self, call: impl FnMut(Addr<A>) -> C) -> Gather<C::IntoFuture>
    where
        C: IntoFuture,
        C::IntoFuture: Unpin,
    {
        Gather::new(self.each().map(call).map(IntoFuture::into_future))
    }

    /// Makes one call to every instance, and folds the values in the order of their shards.
    ///
    /// Nothing is folded before all have answered.
    ///
    /// # Errors
    /// The first error in the order of the shards. To go on with the values of the others use [`Sharded::map`].
    ///
    /// # Cancel safety
    /// See [`Gather`].
    pub fn map_reduce<C, T, E, S>(
        &self,
        call: impl FnMut(Addr<A>) -> C,
        initial: S,
        fold: impl FnMut(S, T) -> S,
    ) -> impl Future<Output = Result<S, E>>
    where
        C: IntoFuture<Output = Result<T, E>>,
        C::IntoFuture: Unpin,
    {
        let values = self.map(call);
        async move {
            let values: Result<Vec<T>, E> = values.await.into_iter().collect();
            Ok(values?.into_iter().fold(initial, fold))
        }
    }

    /// Tells every instance, waiting for room at each, but for none of the handlers.
    ///
    /// # Errors
    /// [`TellEachError`] when some were not told; all others were.
    ///
    /// # Cancel safety
    /// Dropping the future drops the messages that have not been sent; those that have are handled.
    ///
    /// # Examples
    /// ```
    /// use greenroom::prelude::*;
    ///
    /// #[derive(Default)]
    /// struct Rates { percent: u8 }
    ///
    /// #[actor]
    /// impl Rates {
    ///     pub fn set(&mut self, percent: u8) { self.percent = percent }
    ///     pub fn percent(&self) -> u8 { self.percent }
    /// }
    ///
    /// let system = System::start(2)?;
    /// system.block_on(async {
    ///     let rates = system.spawn_sharded(|_| Rates::default()).await?;
    ///     rates.broadcast(|rates| rates.set(7)).await?;
    ///     for rate in rates.map(|rates| rates.percent()).await {
    ///         assert_eq!(rate?, 7);
    ///     }
    ///     Ok::<(), greenroom::Error>(())
    /// })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn broadcast<M, T, B>(
        &self,
        mut call: impl FnMut(Addr<A>) -> Call<Remote<A>, M, T, B>,
    ) -> TellEach<A, M, T, B>
    where
        M: ReplyMode,
        B: Method<Remote<A>, M, T>,
    {
        TellEach {
            tells: Gather::new(self.each().map(|addr| call(addr).tell())),
        }
    }
}

/// The future of [`Sharded::broadcast`].
#[must_use = "messages are sent when the future is awaited"]
pub struct TellEach<A: Actor, M: ReplyMode, T, B: Method<Remote<A>, M, T>> {
    tells: Gather<Tell<Remote<A>, M, T, B>>,
}

impl<A: Actor, M: ReplyMode, T, B: Method<Remote<A>, M, T>> Future for TellEach<A, M, T, B> {
    type Output = Result<(), TellEachError<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcomes = std::task::ready!(Pin::new(&mut self.tells).poll(cx));
        let shards = outcomes.len();
        let refused: Vec<_> = (0_u16..)
            .map(ShardId::from)
            .zip(outcomes)
            .filter_map(|(shard, outcome)| Some((shard, outcome.err()?)))
            .collect();
        Poll::Ready(if refused.is_empty() {
            Ok(())
        } else {
            Err(TellEachError { shards, refused })
        })
    }
}

impl<A: Actor, M: ReplyMode, T, B: Method<Remote<A>, M, T>> fmt::Debug for TellEach<A, M, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tells.fmt(f)
    }
}

/// Which instances a [`Sharded::broadcast`] did not reach.
pub struct TellEachError<T> {
    shards: usize,
    refused: Vec<(ShardId, SendError<T>)>,
}

impl<T> TellEachError<T> {
    /// How many instances were told.
    #[must_use]
    pub fn told(&self) -> usize {
        self.shards - self.refused.len()
    }

    /// The shards whose instances were not told, in order, each with the reason and the arguments.
    #[must_use]
    pub fn into_refused(self) -> Vec<(ShardId, SendError<T>)> {
        self.refused
    }
}

impl<T> fmt::Display for TellEachError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (told, shards) = (self.told(), self.shards);
        write!(f, "{told} of {shards} shards were told")?;
        match self.refused.first() {
            Some((shard, error)) => write!(f, "; the first that was not is {shard}: {error}"),
            None => Ok(()),
        }
    }
}

impl<T> fmt::Debug for TellEachError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> std::error::Error for TellEachError<T> {}
