//! Asking: a call whose answer is awaited.

use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::mesh::{self, OutsideReply, ReplyKey, ReplySlot};
use greenroom_runtime::time::{Sleep, sleep};

use super::send::Unsent;
use super::{Answers, Call, Method, ReplyMode};
use crate::address::{Outside, Port, Refused};
use crate::error::{CallError, Timeout};
use crate::reply::{Answer, Reply};

/// The future of an ask.
///
/// # Cancel safety
/// Dropped before the message was accepted it sends nothing; after that the handler runs, and its answer is dropped.
///
/// # Shard affinity
/// `Send` if arguments and answer are and the handle is an [`crate::Addr`]. It may be polled on any thread, and still
/// answers if it moves to another one in between.
#[must_use = "an ask does nothing until it is awaited"]
pub struct Ask<P: Port, M: ReplyMode, A, B> {
    call: Unsent<P, M, A, B>,
    state: State<M::Reply>,
    limit: Option<Duration>,
    timer: Timer,
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> Ask<P, M, A, B> {
    #[inline]
    pub(super) fn new(call: Call<P, M, A, B>) -> Self {
        Self {
            call: Unsent::new(call),
            state: State::Sending,
            limit: None,
            timer: Timer::None,
        }
    }

    pub(super) fn within(call: Call<P, M, A, B>, limit: Duration) -> Self {
        Self {
            limit: Some(limit),
            ..Self::new(call)
        }
    }
}

enum State<R: 'static> {
    Sending,
    Waiting(ReplySlot<Answer<R>>),
    Outside {
        reply: OutsideReply<Answer<R>>,
        /// Dropped with the ask: a message that still waits for room is then not sent.
        #[expect(dead_code, reason = "held for its drop")]
        accepted: oneshot::Receiver<()>,
    },
}

/// What limits the call.
enum Timer {
    None,
    /// On a shard: its own timer.
    Here(Sleep),
    /// Elsewhere: a timer of the actor's shard.
    Outside(oneshot::Receiver<()>),
    /// There is nobody left to keep time: the answer, or its absence, will come at once.
    Lost,
}

impl<P: Port, M: ReplyMode, A, B> Unpin for Ask<P, M, A, B> {}

impl<P: Port, M: Answers, A, B: Method<P, M, A>> Future for Ask<P, M, A, B> {
    type Output = M::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M::Output> {
        let this = &mut *self;
        if let State::Sending = this.state {
            if let Some(answer) = this.call.ask_at_once() {
                return Poll::Ready(this.output(answer));
            }
            if let Poll::Ready(Err(refused)) = this.poll_sending(cx) {
                debug_assert!(
                    refused != Refused::Full,
                    "a sender that waits is not told that it is full"
                );
                return Poll::Ready(M::error(CallError::Stopped(this.call.site())));
            }
        }
        let answer = match &mut this.state {
            State::Sending => Poll::Pending,
            State::Waiting(slot) => Pin::new(slot).poll(cx),
            // A message that is dropped somewhere answers; a missing answer means that its shard is gone.
            State::Outside { reply, .. } => Pin::new(reply).poll(cx).map(Result::ok),
        };
        match answer {
            Poll::Ready(Some(answer)) => Poll::Ready(this.output(answer)),
            Poll::Ready(None) => Poll::Ready(M::error(CallError::Killed(this.call.site()))),
            Poll::Pending => match this.limit {
                Some(limit) => this.poll_limit(limit, cx),
                None => Poll::Pending,
            },
        }
    }
}

impl<P: Port, M: Answers, A, B: Method<P, M, A>> Ask<P, M, A, B> {
    #[inline]
    fn output(&self, answer: Answer<M::Reply>) -> M::Output {
        match answer {
            Ok(value) => M::value(value),
            Err(failure) => M::error(CallError::from_failure(self.call.site(), failure)),
        }
    }

    /// Sends; `Ready(Ok)` when the state says where the answer will come.
    #[inline]
    fn poll_sending(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        let mut opened = None;
        let open = || {
            let (slot, key): (_, ReplyKey<Answer<M::Reply>>) =
                mesh::open().expect("a send that is accepted here is made on a shard");
            opened = Some(slot);
            Reply::to(key)
        };
        match self.call.poll_send(cx, open) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => {
                self.state = State::Waiting(opened.expect("opened when the message was built"));
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(Refused::Outside)) => {
                let (reply, key) = mesh::open_outside();
                let (sender, accepted) = oneshot::channel();
                let sent = self
                    .call
                    .send_outside(Reply::to(key), Outside::Waiting(sender));
                self.state = State::Outside { reply, accepted };
                Poll::Ready(sent)
            }
            Poll::Ready(Err(refused)) => Poll::Ready(Err(refused)),
        }
    }

    #[cold]
    fn poll_limit(&mut self, limit: Duration, cx: &mut Context<'_>) -> Poll<M::Output> {
        let on_shard = greenroom_runtime::current_shard().is_some();
        let moved_off = matches!(self.timer, Timer::Here(_)) && !on_shard;
        if moved_off || matches!(self.timer, Timer::None) {
            self.timer = if on_shard {
                Timer::Here(sleep(limit))
            } else {
                Timer::Outside(self.call.port().timer_outside(limit))
            };
        }
        let passed = match &mut self.timer {
            Timer::None | Timer::Lost => Poll::Pending,
            Timer::Here(sleep) => pin!(sleep).poll(cx).map(|()| true),
            Timer::Outside(fired) => Pin::new(fired).poll(cx).map(|fired| fired.is_ok()),
        };
        match passed {
            Poll::Pending => Poll::Pending,
            Poll::Ready(false) => {
                self.timer = Timer::Lost;
                Poll::Pending
            }
            Poll::Ready(true) => {
                let sent = self.call.is_sent();
                Poll::Ready(M::error(CallError::Timeout(
                    self.call.site(),
                    Timeout { limit, sent },
                )))
            }
        }
    }
}

impl<P: Port, M: ReplyMode, A, B: Method<P, M, A>> fmt::Debug for Ask<P, M, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ask({})", self.call.site())
    }
}
