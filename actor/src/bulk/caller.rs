//! Asking an actor whose type is not known.

use std::convert::Infallible;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{By, Target};
use crate::actor::Actor;
use crate::address::Addr;
use crate::error::CallError;

/// Any actor that answers this one call: `T` is what it is asked, `R` the answer, `E` the handler's own error if it has one.
///
/// It is made of an address and a closure that makes the call, so whoever asks needs not know whom. Like an address it
/// keeps no actor alive. Several arguments are a tuple: `Caller<(Key, u64), bool>`.
///
/// # Cost
/// 16 bytes; making one allocates, cloning it counts a reference. An ask that is answered at once allocates nothing; one
/// that waits for its answer takes one allocation.
///
/// # Equality
/// As for [`crate::Recipient`].
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
/// use greenroom::Caller;
///
/// struct Table { rows: Vec<String> }
/// #[actor]
/// impl Table {
///     pub fn row(&self, number: usize) -> Option<String> { self.rows.get(number).cloned() }
/// }
///
/// struct Squares;
/// #[actor]
/// impl Squares {
///     pub fn square(&self, number: usize) -> usize { number * number }
/// }
///
/// async fn first_answer(callers: &[Caller<usize, Option<String>>]) -> Result<Option<String>, CallError> {
///     for caller in callers {
///         if let Some(answer) = caller.ask(3).await? {
///             return Ok(Some(answer));
///         }
///     }
///     Ok(None)
/// }
///
/// let system = System::start(2)?;
/// system.block_on(async {
///     let table = system.spawn_on(1, || Table { rows: vec!["zero".to_owned()] }).await?;
///     let caller: Caller<usize, Option<String>> = Caller::new(table, |table, number| table.row(number));
///     assert_eq!(caller.ask(0).await?.as_deref(), Some("zero"));
///     assert_eq!(first_answer(&[caller]).await?, None);
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
pub struct Caller<T, R, E = Infallible> {
    way: Arc<dyn Way<T, R, E>>,
}

type Answer<R, E> = Result<R, CallError<E>>;
type Waiting<R, E> = Pin<Box<dyn Future<Output = Answer<R, E>> + Send>>;

/// An address and a method, without their types.
trait Way<T, R, E>: Send + Sync {
    fn target(&self) -> &Target;

    /// Asks; the answer, or how to wait for it.
    fn ask(&self, item: T, cx: &mut Context<'_>) -> Result<Answer<R, E>, Waiting<R, E>>;
}

impl<A, F, C, T, R, E> Way<T, R, E> for By<A, F>
where
    A: Actor,
    F: Fn(Addr<A>, T) -> C + Send + Sync,
    C: IntoFuture<Output = Answer<R, E>>,
    C::IntoFuture: Send + Unpin + 'static,
{
    fn target(&self) -> &Target {
        &self.target
    }

    fn ask(&self, item: T, cx: &mut Context<'_>) -> Result<Answer<R, E>, Waiting<R, E>> {
        let mut ask = self.call(item).into_future();
        match Pin::new(&mut ask).poll(cx) {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => Err(Box::pin(ask)),
        }
    }
}

impl<T, R, E> Caller<T, R, E> {
    /// A handle that asks a method of an actor.
    ///
    /// The closure makes the call for one item; it is called once for each ask. The call may have its own limit:
    /// `|table, number| table.row(number).timeout(limit)`.
    pub fn new<A, C>(addr: Addr<A>, call: impl Fn(Addr<A>, T) -> C + Send + Sync + 'static) -> Self
    where
        A: Actor,
        C: IntoFuture<Output = Result<R, CallError<E>>>,
        C::IntoFuture: Send + Unpin + 'static,
    {
        Self {
            way: Arc::new(By::new(addr, call)),
        }
    }

    /// Asks, as awaiting a [`crate::Call`] does.
    ///
    /// # Errors
    /// The future resolves to a [`CallError`] when there is no answer.
    ///
    /// # Cancel safety
    /// As for [`crate::Ask`].
    pub fn ask(&self, item: T) -> Asking<'_, T, R, E> {
        Asking {
            state: State::New(&*self.way, item),
        }
    }
}

impl<T, R, E> Clone for Caller<T, R, E> {
    fn clone(&self) -> Self {
        Self {
            way: self.way.clone(),
        }
    }
}

impl<T, R, E> PartialEq for Caller<T, R, E> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.way, &other.way) || self.way.target().is_same(other.way.target())
    }
}

impl<T, R, E> Eq for Caller<T, R, E> {}

impl<T, R, E> Hash for Caller<T, R, E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.way.target().hash(state);
    }
}

impl<T, R, E> fmt::Debug for Caller<T, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.way.target().describe("Caller", f)
    }
}

/// The future of [`Caller::ask`].
#[must_use = "an ask does nothing until it is awaited"]
pub struct Asking<'a, T, R, E = Infallible> {
    state: State<'a, T, R, E>,
}

enum State<'a, T, R, E> {
    New(&'a dyn Way<T, R, E>, T),
    Waiting(Waiting<R, E>),
    Done,
}

impl<T, R, E> Unpin for Asking<'_, T, R, E> {}

impl<T, R, E> Future for Asking<'_, T, R, E> {
    type Output = Result<R, CallError<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waiting = match std::mem::replace(&mut self.state, State::Done) {
            State::New(way, item) => match way.ask(item, cx) {
                Ok(answer) => return Poll::Ready(answer),
                Err(waiting) => {
                    self.state = State::Waiting(waiting);
                    return Poll::Pending;
                }
            },
            State::Waiting(waiting) => waiting,
            State::Done => panic!("`Asking` was polled after it had ended"),
        };
        let answer = waiting.as_mut().poll(cx);
        if answer.is_pending() {
            self.state = State::Waiting(waiting);
        }
        answer
    }
}

impl<T, R, E> fmt::Debug for Asking<'_, T, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::New(..) => "new",
            State::Waiting(_) => "waiting",
            State::Done => "done",
        };
        f.debug_tuple("Asking").field(&state).finish()
    }
}
