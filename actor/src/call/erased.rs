//! A call whose actor is not known: what the methods of a trait of calls return.

use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::time::Duration;

use greenroom_runtime::time::Instant;

use super::term::Limit;
use super::{Answers, Ask, Call, IsResult, Method, Tell, Urgent};
use crate::address::Port;
use crate::error::{CallError, CallSite, SendError};

/// The [`DynCall`] of a handler that returns a `Result`, under any alias.
///
/// This is how a trait that `#[actor(trait = ..)]` declares spells it; a stand-in may name value and error instead.
///
/// # Examples
/// ```
/// use greenroom::{DynCall, DynCallOf};
///
/// fn same(call: DynCallOf<std::io::Result<u32>>) -> DynCall<u32, std::io::Error> {
///     call
/// }
/// # let _ = same;
/// ```
pub type DynCallOf<R> = DynCall<<R as IsResult>::Ok, <R as IsResult>::Err>;

/// The future of an ask through a [`DynCall`].
type DynAsk<T, E> = Pin<Box<dyn Future<Output = Result<T, CallError<E>>> + Send>>;

/// The future of a tell through a [`DynCall`].
type DynTell = Pin<Box<dyn Future<Output = Result<(), SendError<()>>> + Send>>;

/// A call of an actor of any type, or of a stand-in for one.
///
/// What `#[actor(trait = ..)]` declares returns it, so that the trait can be a trait object. Like a [`Call`] it is lazy:
/// awaiting it asks. `T` and `E` are the value and the error of the handler. Each call costs an allocation, and an ask or
/// a tell one more.
///
/// # Examples
/// ```
/// use greenroom::{DynCall, prelude::*};
///
/// struct Stock { left: u32 }
///
/// #[actor(trait = Shop)]
/// impl Stock {
///     pub fn buy(&mut self, count: u32) -> Result<u32, String> {
///         self.left = self.left.checked_sub(count).ok_or("sold out")?;
///         Ok(self.left)
///     }
/// }
///
/// /// Knows nothing of actors, shards or mailboxes.
/// async fn buy_two(shop: &dyn Shop) -> Result<u32, CallError<String>> {
///     shop.buy(1).await?;
///     shop.buy(1).await
/// }
///
/// struct Closed;
///
/// impl Shop for Closed {
///     fn buy(&self, _: u32) -> DynCall<u32, String> { DynCall::failed("closed".to_owned()) }
/// }
///
/// let system = System::start(1)?;
/// system.block_on(async {
///     let stock = system.spawn_on(0, || Stock { left: 5 }).await?;
///     assert_eq!(buy_two(&*stock).await?, 3);
///     assert_eq!(buy_two(&Closed).await.unwrap_err().to_string(), "closed");
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
#[must_use = "a call does nothing until it is `.await`ed or told with `.tell()`"]
pub struct DynCall<T, E = Infallible> {
    kind: Kind<T, E>,
    is_urgent: bool,
}

enum Kind<T, E> {
    Call(Box<dyn Erased<T, E> + Send>),
    Ready(Result<T, E>),
    Stopped,
}

impl<T: Send + 'static, E: Send + 'static> DynCall<T, E> {
    /// A call that a stand-in answers with a value.
    pub fn ready(value: T) -> Self {
        Kind::Ready(Ok(value)).into()
    }

    /// A call that a stand-in answers with an error of its handler.
    pub fn failed(error: E) -> Self {
        Kind::Ready(Err(error)).into()
    }

    /// A call of a stand-in for an actor that has stopped.
    pub fn stopped() -> Self {
        Kind::Stopped.into()
    }

    /// As [`Call::tell`]; the arguments do not come back.
    ///
    /// # Errors
    /// The future resolves to a [`SendError`] when the actor has stopped.
    pub fn tell(self) -> DynTell {
        match self.kind {
            Kind::Call(call) => call.tell(self.is_urgent),
            Kind::Ready(_) => Box::pin(ready(Ok(()))),
            Kind::Stopped => Box::pin(ready(Err(nobody()))),
        }
    }

    /// As [`Call::try_tell`]; the arguments do not come back.
    ///
    /// # Errors
    /// [`SendError`] when there is no room or the actor has stopped.
    pub fn try_tell(self) -> Result<(), SendError<()>> {
        match self.kind {
            Kind::Call(call) => call.try_tell(self.is_urgent),
            Kind::Ready(_) => Ok(()),
            Kind::Stopped => Err(nobody()),
        }
    }

    /// As [`Call::urgent`].
    pub fn urgent(self) -> Self {
        Self {
            is_urgent: true,
            ..self
        }
    }

    /// As [`Call::timeout`].
    pub fn timeout(self, limit: Duration) -> DynAsk<T, E> {
        self.ask(Limit::Within(limit))
    }

    /// As [`Call::deadline`].
    pub fn deadline(self, at: impl Into<Instant>) -> DynAsk<T, E> {
        self.ask(Limit::Until(at.into()))
    }

    /// As [`Call::no_timeout`].
    pub fn no_timeout(self) -> DynAsk<T, E> {
        self.ask(Limit::Never)
    }

    fn ask(self, limit: Limit) -> DynAsk<T, E> {
        match self.kind {
            Kind::Call(call) => call.ask(limit, self.is_urgent),
            Kind::Ready(answer) => Box::pin(ready(answer.map_err(CallError::Handler))),
            Kind::Stopped => Box::pin(ready(Err(CallError::Stopped(CallSite::STAND_IN)))),
        }
    }
}

impl<T: Send + 'static, E: Send + 'static> IntoFuture for DynCall<T, E> {
    type Output = Result<T, CallError<E>>;
    type IntoFuture = DynAsk<T, E>;

    fn into_future(self) -> DynAsk<T, E> {
        self.ask(Limit::Usual)
    }
}

fn nobody() -> SendError<()> {
    SendError {
        site: CallSite::STAND_IN,
        full: false,
        cycle: None,
        args: None,
    }
}

impl<T, E> From<Kind<T, E>> for DynCall<T, E> {
    fn from(kind: Kind<T, E>) -> Self {
        Self {
            kind,
            is_urgent: false,
        }
    }
}

impl<P, M, A, B, T, E> From<Call<P, M, A, B>> for DynCall<T, E>
where
    P: Port + 'static,
    M: Answers<Output = Result<T, CallError<E>>> + 'static,
    A: 'static,
    B: Method<P, M, A> + 'static,
    Call<P, M, A, B>: Send,
    Ask<P, M, A, B>: Send,
    Tell<P, M, A, B>: Send,
    Ask<P, M, A, Urgent<B>>: Send,
    Tell<P, M, A, Urgent<B>>: Send,
{
    fn from(call: Call<P, M, A, B>) -> Self {
        let call: Box<dyn Erased<T, E> + Send> = Box::new(call);
        Kind::Call(call).into()
    }
}

impl<T, E> fmt::Debug for DynCall<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Call(_) => "DynCall(of an actor)",
            Kind::Ready(_) | Kind::Stopped => "DynCall(of a stand-in)",
        })
    }
}

/// A [`Call`], without its types. The lane is an argument: a call that could be made urgent would have one more type for each
/// time it is.
trait Erased<T, E> {
    fn ask(self: Box<Self>, limit: Limit, is_urgent: bool) -> DynAsk<T, E>;
    fn tell(self: Box<Self>, is_urgent: bool) -> DynTell;
    fn try_tell(self: Box<Self>, is_urgent: bool) -> Result<(), SendError<()>>;
}

impl<P, M, A, B, T, E> Erased<T, E> for Call<P, M, A, B>
where
    P: Port + 'static,
    M: Answers<Output = Result<T, CallError<E>>> + 'static,
    A: 'static,
    B: Method<P, M, A> + 'static,
    Ask<P, M, A, B>: Send,
    Tell<P, M, A, B>: Send,
    Ask<P, M, A, Urgent<B>>: Send,
    Tell<P, M, A, Urgent<B>>: Send,
{
    fn ask(self: Box<Self>, limit: Limit, is_urgent: bool) -> DynAsk<T, E> {
        if is_urgent {
            Box::pin(Ask::limited(self.urgent(), limit))
        } else {
            Box::pin(Ask::limited(*self, limit))
        }
    }

    fn tell(self: Box<Self>, is_urgent: bool) -> DynTell {
        if is_urgent {
            without_arguments(self.urgent().tell())
        } else {
            without_arguments(Call::tell(*self))
        }
    }

    fn try_tell(self: Box<Self>, is_urgent: bool) -> Result<(), SendError<()>> {
        let told = if is_urgent {
            self.urgent().try_tell()
        } else {
            Call::try_tell(*self)
        };
        told.map_err(|error| error.map_args(|_| None))
    }
}

fn without_arguments<A: 'static>(
    told: impl Future<Output = Result<(), SendError<A>>> + Send + 'static,
) -> DynTell {
    Box::pin(async move { told.await.map_err(|error| error.map_args(|_| None)) })
}
