//! Telling an actor whose type is not known.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{By, Target, take_back};
use crate::actor::Actor;
use crate::address::{Addr, Remote};
use crate::call::{Call, Method, ReplyMode};
use crate::error::SendError;

/// Any actor that takes this one message.
///
/// It is made of an address and a closure that says which method an item goes to, so actors of different types can
/// stand in one list, and generic code can send to whatever it is given. Like an address it keeps no actor alive.
///
/// # Cost
/// 16 bytes; making one allocates, cloning it counts a reference. Telling through it costs one indirect call more than
/// through an address, and allocates only when the message has to wait for room.
///
/// # Equality
/// Two recipients are equal when one is a clone of the other, or when they lead to one actor by the same closure and
/// that captures nothing. Closures written in two places are two. So a recipient that is to be found in a set is best
/// made by one function.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
/// use greenroom::Recipient;
///
/// #[derive(Default)]
/// struct Total { of: u64 }
/// #[actor]
/// impl Total {
///     pub fn add(&mut self, number: u64) { self.of += number }
///     pub fn of(&self) -> u64 { self.of }
/// }
///
/// #[derive(Default)]
/// struct Names { seen: Vec<String> }
/// #[actor]
/// impl Names {
///     pub fn note(&mut self, name: String) { self.seen.push(name) }
///     pub fn count(&self) -> usize { self.seen.len() }
/// }
///
/// let system = System::start(2)?;
/// system.block_on(async {
///     let total = system.spawn_on(0, Total::default).await?;
///     let names = system.spawn_on(1, Names::default).await?;
///     let listeners: Vec<Recipient<u64>> = vec![
///         Recipient::new(total, |total, number| total.add(number)),
///         Recipient::new(names, |names, number: u64| names.note(number.to_string())),
///     ];
///     for listener in &listeners {
///         listener.tell(5).await?;
///     }
///     assert_eq!((total.of().await?, names.count().await?), (5, 1));
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
pub struct Recipient<T> {
    way: Arc<dyn Way<T>>,
}

/// An address and a method, without their types.
trait Way<T>: Send + Sync {
    fn target(&self) -> &Target;

    fn try_tell(&self, item: T) -> Result<(), SendError<T>>;

    /// Tells, or says how to wait for it.
    fn tell(&self, item: T, cx: &mut Context<'_>) -> Result<Sent<T>, Waiting<T>>;
}

type Sent<T> = Result<(), SendError<T>>;
type Waiting<T> = Pin<Box<dyn Future<Output = Sent<T>> + Send>>;

impl<A, F, M, B, T, Args> Way<T> for By<A, F>
where
    A: Actor,
    F: Fn(Addr<A>, T) -> Call<Remote<A>, M, Args, B> + Send + Sync,
    M: ReplyMode + 'static,
    B: Method<Remote<A>, M, Args> + 'static,
    T: 'static,
    Args: Send + 'static,
{
    fn target(&self) -> &Target {
        &self.target
    }

    fn try_tell(&self, item: T) -> Result<(), SendError<T>> {
        let told = self.call(item).try_tell();
        told.map_err(|error| error.map_args(take_back))
    }

    fn tell(&self, item: T, cx: &mut Context<'_>) -> Result<Sent<T>, Waiting<T>> {
        let mut tell = self.call(item).tell();
        match Pin::new(&mut tell).poll(cx) {
            Poll::Ready(sent) => Ok(sent.map_err(|error| error.map_args(take_back))),
            Poll::Pending => Err(Box::pin(async move {
                tell.await.map_err(|error| error.map_args(take_back))
            })),
        }
    }
}

impl<T: 'static> Recipient<T> {
    /// A handle that sends items to a method of an actor.
    ///
    /// The closure makes the call for one item. It is called once for each, and may add what it captures or change the
    /// item.
    pub fn new<A, M, Args, B>(
        addr: Addr<A>,
        call: impl Fn(Addr<A>, T) -> Call<Remote<A>, M, Args, B> + Send + Sync + 'static,
    ) -> Self
    where
        A: Actor,
        M: ReplyMode + 'static,
        B: Method<Remote<A>, M, Args> + 'static,
        Args: Send + 'static,
    {
        Self {
            way: Arc::new(By::new(addr, call)),
        }
    }

    /// Sends without asking for an answer, as [`Call::tell`] does.
    ///
    /// # Errors
    /// The future resolves to a [`SendError`] when the actor has stopped. It has the item, unless the closure made
    /// something else of it.
    ///
    /// # Cancel safety
    /// Dropping the future before it is done sends nothing.
    pub fn tell(&self, item: T) -> Telling<'_, T> {
        Telling {
            state: State::New(&*self.way, item),
        }
    }

    /// Sends without waiting, if the message is accepted now, as [`Call::try_tell`] does.
    ///
    /// # Errors
    /// [`SendError`] when there is no room or the actor has stopped; it has the item, unless the closure made something
    /// else of it.
    pub fn try_tell(&self, item: T) -> Result<(), SendError<T>> {
        self.way.try_tell(item)
    }
}

impl<T> Clone for Recipient<T> {
    fn clone(&self) -> Self {
        Self {
            way: self.way.clone(),
        }
    }
}

impl<T> PartialEq for Recipient<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.way, &other.way) || self.way.target().is_same(other.way.target())
    }
}

impl<T> Eq for Recipient<T> {}

impl<T> Hash for Recipient<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.way.target().hash(state);
    }
}

impl<T> fmt::Debug for Recipient<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.way.target().describe("Recipient", f)
    }
}

/// The future of [`Recipient::tell`].
#[must_use = "a message is sent when the future is awaited"]
pub struct Telling<'a, T> {
    state: State<'a, T>,
}

enum State<'a, T> {
    New(&'a dyn Way<T>, T),
    Waiting(Waiting<T>),
    Done,
}

impl<T> Unpin for Telling<'_, T> {}

impl<T> Future for Telling<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waiting = match std::mem::replace(&mut self.state, State::Done) {
            State::New(way, item) => match way.tell(item, cx) {
                Ok(sent) => return Poll::Ready(sent),
                Err(waiting) => {
                    self.state = State::Waiting(waiting);
                    return Poll::Pending;
                }
            },
            State::Waiting(waiting) => waiting,
            State::Done => panic!("`Telling` was polled after it had ended"),
        };
        let sent = waiting.as_mut().poll(cx);
        if sent.is_pending() {
            self.state = State::Waiting(waiting);
        }
        sent
    }
}

impl<T> fmt::Debug for Telling<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::New(..) => "new",
            State::Waiting(_) => "waiting",
            State::Done => "done",
        };
        f.debug_tuple("Telling").field(&state).finish()
    }
}
