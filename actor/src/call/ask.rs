//! Asking: a call whose answer is awaited.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::current_shard;
use greenroom_runtime::mesh::{self, AskId, OutsideReply, ReplyKey, ReplySlot, Unanswered};
use greenroom_runtime::time::Instant;

use super::send::Unsent;
use super::term::{Limit, Term};
use super::{Answers, Call, Method, ReplyMode};
use crate::address::{Port, Refused};
use crate::cycle::Edge;
use crate::error::{CallError, Cycle, Timeout};
use crate::handling::{self, Mode};
use crate::outside::Outside;
use crate::reply::{Answer, Reply};

/// The future of an ask.
///
/// # Cancel safety
/// Until the message is accepted an ask waits in line as a [tell](crate::Call::tell) does. Dropped before, it sends nothing. After that the message is skipped, and counted, if its turn
/// comes later; a handler that has begun runs on, and its answer is dropped. The same holds when its time is over.
///
/// # Shard affinity
/// `Send` if arguments and answer are and the handle is an [`crate::Addr`]. It may be polled on any thread, and still
/// answers if it moves to another one in between.
#[must_use = "an ask does nothing until it is awaited"]
pub struct Ask<P: Port, M: ReplyMode, A, B> {
    call: Unsent<P, M, A, B>,
    state: State<M::Reply>,
    term: Term,
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> Ask<P, M, A, B> {
    #[inline]
    pub(super) fn new(call: Call<P, M, A, B>) -> Self {
        Self::limited(call, Limit::Usual)
    }

    #[inline]
    pub(super) fn limited(call: Call<P, M, A, B>, limit: Limit) -> Self {
        Self {
            call: Unsent::new(call),
            state: State::Sending,
            term: Term::Said(limit),
        }
    }

    /// Limits the whole call, see [`Call::timeout`]. Of several limits the last one said holds.
    ///
    /// # Panics
    /// If the ask was polled.
    #[track_caller]
    pub fn timeout(self, limit: Duration) -> Self {
        self.with(Limit::Within(limit))
    }

    /// Limits the whole call, see [`Call::deadline`].
    ///
    /// # Panics
    /// If the ask was polled.
    #[track_caller]
    pub fn deadline(self, at: impl Into<Instant>) -> Self {
        self.with(Limit::Until(at.into()))
    }

    /// Takes the default limit away, see [`Call::no_timeout`].
    ///
    /// # Panics
    /// If the ask was polled.
    #[track_caller]
    pub fn no_timeout(self) -> Self {
        self.with(Limit::Never)
    }

    #[track_caller]
    fn with(mut self, limit: Limit) -> Self {
        assert!(
            matches!(self.term, Term::Said(_)) && matches!(self.state, State::Sending),
            "{} was polled already: say its limit before",
            self.call.site()
        );
        self.term = Term::Said(limit);
        self
    }
}

enum State<R: 'static> {
    Sending,
    Waiting(ReplySlot<Answer<R>>),
    Outside {
        reply: OutsideReply<Answer<R>>,
        /// Heard from when the actor's shard finds the time to be over. Dropped with the ask: a message that still waits
        /// for room is then not sent.
        expired: oneshot::Receiver<Timeout>,
    },
    Done,
}

/// How a wait ended.
enum End<R> {
    Answered(Answer<R>),
    /// Its shard is gone.
    Gone,
    Expired(Timeout),
    Cycle(Cycle),
}

impl<P: Port, M: ReplyMode, A, B> Unpin for Ask<P, M, A, B> {}

impl<P: Port, M: Answers, A, B: Method<P, M, A>> Future for Ask<P, M, A, B> {
    type Output = M::Output;

    /// What an idle actor answers at once is a part of the caller's code, and the value is not moved; all else is a call.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M::Output> {
        let this = &mut *self;
        if let State::Sending = this.state
            && let Some(answer) = this.call.ask_at_once()
        {
            return Poll::Ready(this.output(answer));
        }
        this.poll_way(cx)
    }
}

impl<P: Port, M: Answers, A, B: Method<P, M, A>> Ask<P, M, A, B> {
    /// The way there, and back.
    #[inline(never)]
    fn poll_way(&mut self, cx: &mut Context<'_>) -> Poll<M::Output> {
        if let State::Sending = self.state
            && let Poll::Ready(Err(refused)) = self.poll_sending(cx)
        {
            let site = self.call.site();
            return Poll::Ready(M::error(match refused {
                Refused::Full => CallError::Overflowed(site),
                _ => CallError::Stopped(site),
            }));
        }
        match self.poll_end(cx) {
            Poll::Ready(end) => Poll::Ready(self.finish(end)),
            Poll::Pending if self.term.is_kept() => self.wait(),
            Poll::Pending => match self.poll_term(cx) {
                Poll::Pending => self.wait(),
                done => done,
            },
        }
    }

    #[inline]
    fn output(&self, answer: Answer<M::Reply>) -> M::Output {
        match answer {
            Ok(value) => M::value(value),
            Err(failure) => M::error(CallError::from_failure(self.call.site(), failure)),
        }
    }

    #[inline]
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<End<M::Reply>> {
        match &mut self.state {
            State::Sending => Poll::Pending,
            State::Waiting(slot) => Pin::new(slot).poll(cx).map(|answer| match answer {
                Ok(answer) => End::Answered(answer),
                Err(Unanswered::Gone) => End::Gone,
                Err(Unanswered::Overdue) => End::Expired(self.term.watched().passed(true)),
            }),
            State::Outside { reply, expired } => {
                // First: a message that expires in line is dropped, and its reply then says that there is no answer.
                if let Poll::Ready(Ok(timeout)) = Pin::new(expired).poll(cx) {
                    return Poll::Ready(End::Expired(timeout));
                }
                // A message that is dropped somewhere answers; a missing answer means that its shard is gone.
                let answer = Pin::new(reply).poll(cx);
                answer.map(|answer| answer.map_or(End::Gone, End::Answered))
            }
            State::Done => panic!("{} was polled after it was done", self.call.site()),
        }
    }

    #[inline]
    fn finish(&mut self, end: End<M::Reply>) -> M::Output {
        match end {
            End::Answered(answer) => {
                self.state = State::Done;
                self.output(answer)
            }
            End::Gone => {
                self.state = State::Done;
                M::error(CallError::Killed(self.call.site()))
            }
            End::Expired(timeout) => {
                self.give_up();
                M::error(CallError::Timeout(self.call.site(), timeout))
            }
            End::Cycle(cycle) => {
                self.give_up();
                M::error(CallError::Cycle(self.call.site(), cycle))
            }
        }
    }

    /// Sends; `Ready(Ok)` when the state says where the answer will come.
    #[inline]
    fn poll_sending(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        let mut opened = None;
        let term = &mut self.term;
        let open = || {
            let (slot, key): (_, ReplyKey<Answer<M::Reply>>) =
                mesh::open(term.due()).expect("a send that is accepted here is made on a shard");
            opened = Some(slot);
            Reply::to(key)
        };
        match self.call.poll_send(cx, open) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => {
                self.state = State::Waiting(opened.expect("opened when the message was built"));
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(Refused::Outside)) => Poll::Ready(self.send_outside()),
            Poll::Ready(Err(refused)) => Poll::Ready(Err(refused)),
        }
    }

    #[cold]
    fn send_outside(&mut self) -> Result<(), Refused> {
        let (due, allowed) = self.term.due_outside();
        let (reply, key) = mesh::open_outside(due);
        let (asker, expired) = oneshot::channel();
        let sent = self
            .call
            .send_outside(Reply::to(key), Outside::Asking(asker, allowed));
        self.state = State::Outside { reply, expired };
        sent
    }

    /// Waits. A handler that is asked about it says for what.
    #[inline]
    fn wait(&mut self) -> Poll<M::Output> {
        let id = match &self.state {
            State::Waiting(slot) => Some(slot.ask()),
            State::Sending => self.call.waits_for_room(),
            State::Outside { .. } | State::Done => None,
        };
        match id.map(|id| (id, handling::note_wait(id))) {
            None | Some((_, Mode::Usual)) => Poll::Pending,
            Some((id, mode)) => self.wait_asked(id, mode),
        }
    }

    #[cold]
    fn wait_asked(&mut self, id: AskId, mode: Mode) -> Poll<M::Output> {
        if mode == Mode::Inquiring {
            let edge = match &self.state {
                State::Waiting(_) => Some(Edge::Answer(id)),
                _ => current_shard().map(|shard| Edge::Room(shard, B::LANE)),
            };
            let wakers = 1 + self.term.wakers();
            if let Some(edge) = edge {
                handling::tell(self.call.describe(id, edge, wakers));
            }
            return Poll::Pending;
        }
        match handling::broken(id) {
            None => Poll::Pending,
            Some(cycle) => Poll::Ready(self.finish(End::Cycle(cycle))),
        }
    }

    #[cold]
    fn poll_term(&mut self, cx: &mut Context<'_>) -> Poll<M::Output> {
        let port = self.call.port();
        let passed = self.term.poll(cx, |limit| port.timer_outside(limit));
        passed.map(|allowance| {
            let timeout = allowance.passed(self.call.is_sent());
            self.finish(End::Expired(timeout))
        })
    }
}

impl<P: Port, M: ReplyMode, A, B> Ask<P, M, A, B> {
    /// Lets the actor know that nobody waits for the answer any more.
    #[cold]
    fn give_up(&mut self) {
        let port = self.call.port();
        match std::mem::replace(&mut self.state, State::Done) {
            State::Sending | State::Done => {}
            State::Waiting(slot) => {
                let ask = (!slot.is_filled()).then(|| slot.ask());
                // First: who looks at the slot then finds it closed.
                drop(slot);
                if let Some(ask) = ask {
                    port.give_up(Some(ask));
                }
            }
            State::Outside { mut reply, expired } => {
                let is_open = matches!(reply.try_recv(), Ok(None));
                drop((reply, expired));
                if is_open {
                    port.give_up(None);
                }
            }
        }
    }
}

impl<P: Port, M: ReplyMode, A, B> Drop for Ask<P, M, A, B> {
    #[inline]
    fn drop(&mut self) {
        if matches!(self.state, State::Waiting(_) | State::Outside { .. }) {
            self.give_up();
        }
    }
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> fmt::Debug for Ask<P, M, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ask({})", self.call.site())
    }
}
