//! Telling a run of messages.
//!
//! # States
//! ```text
//!  between ──next──► holds one ──accepted──► between          (counted)
//!                      │    └──must wait──► in line ──accepted──► between
//!                      └──from outside──► a part on its way ──in the mailbox──► between
//! ```
//! *Holds one* and *in line*: a call was taken from the iterator and not sent. Dropped, it is sent to nobody;
//! [`TellMany::into_rest`] gives it back in front of the others.
//! *A part on its way*: up to 64 messages were handed to the actor's shard, and are counted as sent. The future waits
//! until they are in the mailbox before it hands over more. Dropped, they arrive all the same.

use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures_channel::oneshot;
use greenroom_runtime::mesh::Lane;

use super::way::{InBulk, Run};
use crate::address::{Direct, Port, Refused};
use crate::call::{Call, Method, ReplyMode, Unsent};
use crate::error::{CallSite, SendError};
use crate::reply::Reply;

/// The most messages of one poll: other tasks of the shard want their turn.
const SENT_PER_POLL: usize = 1024;
/// The most messages that are on their way from a thread outside of the system at a time.
const PART_FROM_OUTSIDE: usize = 64;

/// Tells many messages, one after the other: those of an iterator of calls.
///
/// Each waits for room as one told with [`Call::tell`] does, so the iterator is drained no faster than its actor goes on.
/// They arrive in their order. All calls are of one method, usually of one actor, whose address is then looked up once
/// for as many messages as there is room for. Calls to different actors may be mixed.
///
/// The future resolves to the number of messages sent.
///
/// # Errors
/// [`TellManyError`] when an actor has stopped; it knows how many were sent, and has the arguments of the call that was
/// not. Later calls are still in the iterator: pass `&mut calls` to keep it. On another shard, and from a thread outside
/// of the system, the end of an actor is found out on arrival only: what was sent meanwhile is counted as dead letters.
///
/// # Cancel safety
/// Dropping the future stops it between two messages. [`TellMany::sent`] says how many were sent and
/// [`TellMany::into_rest`] gives back all the others; of an iterator passed as `&mut calls` the one call that the future
/// was about to send is missing if it is merely dropped.
///
/// # Shard affinity
/// Any thread. From outside of the system up to 64 messages are handed over at a time.
///
/// # Examples
/// ```
/// use greenroom::prelude::*;
/// use greenroom::tell_many;
///
/// #[derive(Default)]
/// struct Sum { of: u64 }
///
/// #[actor]
/// impl Sum {
///     pub fn add(&mut self, number: u64) { self.of += number }
///     pub fn of(&self) -> u64 { self.of }
/// }
///
/// let system = System::start(1)?;
/// system.block_on(async {
///     let sum = system.spawn_on(0, Sum::default).await?;
///     let sent = tell_many((1..=1000).map(|number| sum.add(number))).await?;
///     assert_eq!(sent, 1000);
///     assert_eq!(sum.of().await?, 500_500);
///     Ok::<(), greenroom::Error>(())
/// })?;
/// # Ok::<(), greenroom::Error>(())
/// ```
#[inline]
pub fn tell_many<I, P, M, A, B>(calls: I) -> TellMany<I::IntoIter, P, M, A, B>
where
    I: IntoIterator<Item = Call<P, M, A, B>>,
    P: InBulk,
    M: ReplyMode,
    B: Method<P, M, A>,
{
    TellMany {
        row: Row {
            calls: calls.into_iter(),
            next: None,
            to: None,
            sent: 0,
            left: 0,
        },
        part: None,
    }
}

/// The future of [`tell_many`].
#[must_use = "messages are sent when the future is awaited"]
pub struct TellMany<I, P: Port, M: ReplyMode, A, B> {
    row: Row<I, P, M, A, B>,
    /// From outside: resolves when what was handed over is in the mailbox.
    part: Option<oneshot::Receiver<Result<(), Refused>>>,
}

/// What is to be sent.
struct Row<I, P: Port, M: ReplyMode, A, B> {
    calls: I,
    /// Taken from `calls`, and not sent.
    next: Option<Unsent<P, M, A, B>>,
    /// Whom the current run is for.
    to: Option<P>,
    sent: usize,
    /// How many more this poll may send.
    left: usize,
}

impl<I, P, M, A, B> Row<I, P, M, A, B>
where
    I: Iterator<Item = Call<P, M, A, B>>,
    P: InBulk,
    M: ReplyMode,
    B: Method<P, M, A>,
{
    /// Takes the next call; false after the last.
    #[inline]
    fn advance(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.calls.next().map(Unsent::new);
        }
        self.next.is_some()
    }

    /// The messages of a part, all for one actor.
    #[cold]
    fn take_part(&mut self) -> Vec<P::Env> {
        self.left = PART_FROM_OUTSIDE;
        let mut part = Vec::with_capacity(1);
        while self.prepare() {
            part.push(self.build());
        }
        part
    }
}

impl<I, P: Port, M: ReplyMode, A, B> Row<I, P, M, A, B> {
    /// The next one was sent.
    fn pass(&mut self) {
        self.next = None;
        self.sent += 1;
    }
}

impl<I, P, M, A, B> Run<P::Env> for Row<I, P, M, A, B>
where
    I: Iterator<Item = Call<P, M, A, B>>,
    P: InBulk,
    M: ReplyMode,
    B: Method<P, M, A>,
{
    #[inline]
    fn prepare(&mut self) -> bool {
        self.left > 0
            && self.advance()
            && self.next.as_ref().map(|next| next.port().id()) == self.to.map(Direct::id)
    }

    #[inline]
    fn lane(&self) -> Lane {
        B::LANE
    }

    #[inline]
    fn build(&mut self) -> P::Env {
        let mut next = self.next.take().expect("prepared before it is built");
        self.sent += 1;
        self.left -= 1;
        next.build(Reply::none())
    }
}

impl<I, P, M, A, B> TellMany<I, P, M, A, B>
where
    I: Iterator<Item = Call<P, M, A, B>>,
    P: InBulk,
    M: ReplyMode,
    B: Method<P, M, A>,
{
    /// How many messages were sent so far.
    ///
    /// # Examples
    /// ```
    /// # use greenroom::prelude::*;
    /// # use greenroom::tell_many;
    /// # #[derive(Default)]
    /// # struct Busy;
    /// # #[actor(mailbox = 4)]
    /// # impl Busy { pub fn note(&mut self, _number: u32) {} }
    /// # let system = System::start(1)?;
    /// # system.run_on(0, || async {
    /// # let busy = greenroom::spawn(Busy);
    /// # use futures_util::FutureExt;
    /// let mut telling = tell_many((0..10).map(|number| busy.note(number)));
    /// assert!((&mut telling).now_or_never().is_none(), "its mailbox has four places");
    /// assert_eq!(telling.sent(), 4);
    /// let rest = telling.into_rest();
    /// assert_eq!(tell_many(rest).await?, 6);
    /// # Ok::<(), greenroom::Error>(())
    /// # })?;
    /// # Ok::<(), greenroom::Error>(())
    /// ```
    pub fn sent(&self) -> usize {
        self.row.sent
    }

    /// Gives up, and gives back the calls that were not sent.
    pub fn into_rest(self) -> impl Iterator<Item = Call<P, M, A, B>> {
        let Row { calls, next, .. } = self.row;
        next.and_then(Unsent::into_call).into_iter().chain(calls)
    }

    fn fail(&mut self, refused: Refused) -> TellManyError<A> {
        // Sent from outside, and found nobody: what it was made of is gone.
        let next = self.row.next.take();
        let site = next.as_ref().map(Unsent::site);
        let args = next.and_then(Unsent::into_call).map(Call::into_args);
        let site = site.or_else(|| self.row.to.map(|to| to.site(B::NAME)));
        TellManyError {
            sent: self.row.sent,
            refused: SendError {
                site: site.expect("a send that failed had somewhere to go"),
                full: refused == Refused::Full,
                cycle: None,
                args,
            },
        }
    }

    /// The way of a thread that is no shard of the actor's system. `Ready(Ok)` when a part is in the mailbox.
    #[cold]
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TellManyError<A>>> {
        if self.part.is_none() {
            let Some(next) = &self.row.next else {
                return Poll::Ready(Ok(()));
            };
            let port = next.port();
            let sent_before = self.row.sent;
            let (taken, waiting) = oneshot::channel();
            let part = self.row.take_part();
            if let Err(refused) = port.send_part_outside(B::LANE, part, taken) {
                self.row.sent = sent_before;
                return Poll::Ready(Err(self.fail(refused)));
            }
            self.part = Some(waiting);
        }
        let waiting = self.part.as_mut().expect("set just now or before");
        let taken = std::task::ready!(pin!(waiting).poll(cx));
        self.part = None;
        let taken = taken.unwrap_or(Err(Refused::Stopped));
        Poll::Ready(taken.map_err(|refused| self.fail(refused)))
    }
}

impl<I, P: Port, M: ReplyMode, A, B> Unpin for TellMany<I, P, M, A, B> {}

impl<I, P, M, A, B> Future for TellMany<I, P, M, A, B>
where
    I: Iterator<Item = Call<P, M, A, B>>,
    P: InBulk,
    M: ReplyMode,
    B: Method<P, M, A>,
{
    type Output = Result<usize, TellManyError<A>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.part.is_some() {
            std::task::ready!(this.poll_part(cx))?;
        }
        this.row.left = SENT_PER_POLL;
        while this.row.advance() {
            if this.row.left == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let next = this.row.next.as_mut().expect("there is a next one");
            let port = next.port();
            this.row.to = Some(port);
            let sent = if next.waits() {
                // Its turn comes by the place it holds, and only then that of the others.
                std::task::ready!(next.poll_send(cx, Reply::none)).map(|()| this.row.pass())
            } else {
                port.try_send_run(&mut this.row)
            };
            match sent {
                Ok(()) => {}
                Err(Refused::Full) => {
                    let next = this.row.next.as_mut().expect("refused, so not sent");
                    match std::task::ready!(next.poll_send(cx, Reply::none)) {
                        Ok(()) => this.row.pass(),
                        Err(refused) => return Poll::Ready(Err(this.fail(refused))),
                    }
                }
                Err(Refused::Outside) => {
                    std::task::ready!(this.poll_part(cx))?;
                    this.row.left = SENT_PER_POLL;
                }
                Err(Refused::Stopped) => return Poll::Ready(Err(this.fail(Refused::Stopped))),
            }
        }
        Poll::Ready(Ok(this.row.sent))
    }
}

impl<I, P: Port, M: ReplyMode, A, B> fmt::Debug for TellMany<I, P, M, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TellMany")
            .field("sent", &self.row.sent)
            .finish_non_exhaustive()
    }
}

/// Why [`tell_many`] ended before its iterator.
pub struct TellManyError<A> {
    sent: usize,
    refused: SendError<A>,
}

impl<A> TellManyError<A> {
    /// How many messages were sent before.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// The error of the call that was refused, with its arguments.
    #[must_use]
    pub fn into_refused(self) -> SendError<A> {
        self.refused
    }

    /// Whether the actor has stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.refused.is_stopped()
    }

    /// Whether an actor told itself more than its mailbox holds; room comes when its handler ends.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.refused.is_full()
    }

    /// Which call was refused.
    #[must_use]
    pub fn site(&self) -> &CallSite {
        self.refused.site()
    }
}

impl<A> fmt::Display for TellManyError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (messages sent before it: {})",
            self.refused, self.sent
        )
    }
}

impl<A> fmt::Debug for TellManyError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<A> std::error::Error for TellManyError<A> {}
