//! Asks of threads that are no shards: the actor's shard keeps the time of those whose limit is not near.
//!
//! It does so for all of them at once, with one alarm, and notices those that were answered when it looks. Their number
//! is at most twice that of the asks that wait, and a thousand more.
//!
//! Whoever is told something is woken on the actor's shard, by a waker that is anybody's: a panic in it is contained.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_channel::oneshot;
use greenroom_runtime::mesh::{OutsidePass, usual_limit};
use greenroom_runtime::time::{Alarm, Instant, Sleep, sleep, sleep_until};

use crate::address::{Job, Refused};
use crate::call::Allowance;
use crate::error::Timeout;
use crate::fate::Fate;
use crate::life::contain;

/// Who hears about a message that took the long way.
#[derive(Debug)]
pub enum Outside {
    /// A sender that does not wait; it took one of the places for such messages.
    Pass(OutsidePass),
    /// A sender that waits until the message is in the mailbox, or was refused; dropped if it never gets there. One
    /// that gives up before sends nothing.
    Waiting(oneshot::Sender<Result<(), Refused>>),
    /// An asker, to be told when its time is over. One that gives up before the message is in the mailbox sends nothing.
    Asking(oneshot::Sender<Timeout>, Allowed),
    /// Nobody, any more.
    Done,
}

/// The limit of an ask that the actor's shard is to keep.
#[derive(Clone, Copy, Debug)]
#[expect(
    unnameable_types,
    reason = "in the signature of a hidden method of a sealed trait"
)]
pub enum Allowed {
    /// The system's.
    Usual,
    /// None, or the asker keeps it.
    Anything,
    /// A moment.
    Until(Instant, Allowance),
}

impl Allowed {
    /// The moment, on the actor's shard.
    pub(crate) fn reckon(self) -> Option<(Instant, Allowance)> {
        match self {
            Self::Anything => None,
            Self::Until(at, allowance) => Some((at, allowance)),
            Self::Usual => {
                let limit = usual_limit()?;
                Some((Instant::after(limit), Allowance::usual(limit)))
            }
        }
    }
}

/// Tells whoever waits, and may be gone.
fn tell<T>(waits: oneshot::Sender<T>, what: T) {
    contain(|| {
        let _unheard: Result<(), T> = waits.send(what);
    });
}

/// Whoever sent a message the long way, seen from the actor's shard.
pub(crate) struct Sender {
    sent: Outside,
    /// How long an asker waits, if this shard keeps the time; reckoned on arrival.
    limit: Option<(Instant, Allowance)>,
    /// Keeps the time in line.
    timer: Option<Sleep>,
}

impl Sender {
    pub(crate) fn new(sent: Outside) -> Self {
        Self {
            sent,
            limit: None,
            timer: None,
        }
    }

    /// The message has come to the actor's shard.
    pub(crate) fn arrive(&mut self) {
        if let Outside::Asking(_, allowed) = self.sent {
            self.limit = allowed.reckon();
        }
    }

    /// Whether nothing is to be sent any more: the sender has given up, or its time is over while the message is in
    /// line, which it is told.
    pub(crate) fn gives_up(&mut self, cx: &mut Context<'_>, in_line: bool) -> bool {
        let has_left = match &mut self.sent {
            Outside::Waiting(sender) => sender.poll_canceled(cx).is_ready(),
            Outside::Asking(asker, _) => asker.poll_canceled(cx).is_ready(),
            Outside::Pass(_) | Outside::Done => false,
        };
        has_left || in_line && self.is_late(cx)
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let Some((at, allowance)) = self.limit else {
            return false;
        };
        let timer = self.timer.get_or_insert_with(|| sleep_until(at));
        if pin!(timer).poll(cx).is_pending() {
            return false;
        }
        if let Outside::Asking(asker, _) = std::mem::replace(&mut self.sent, Outside::Done) {
            // It may have given up just now.
            tell(asker, allowance.passed(false));
        }
        true
    }

    /// The message is in the mailbox, or was refused: its sender hears of it, and an asker's time is kept.
    pub(crate) fn hear(&mut self, outcome: Result<(), Refused>) {
        match std::mem::replace(&mut self.sent, Outside::Done) {
            Outside::Waiting(sender) => {
                // The sender may have given up just now.
                tell(sender, outcome);
            }
            Outside::Asking(asker, _) => {
                // One whose message was refused hears it from the drop of its reply.
                if let (Ok(()), Some((at, allowance))) = (outcome, self.limit) {
                    Watch::over(at, allowance, asker);
                }
            }
            Outside::Pass(_) | Outside::Done => {}
        }
    }
}

/// Has a message go into its mailbox, which `poll` tries. If there is no room its place in line is taken at once, which
/// keeps such messages in order, and a task waits in it.
pub(crate) fn go_in(mut poll: impl FnMut(&mut Context<'_>) -> Poll<()> + 'static) {
    if poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        greenroom_runtime::spawn(poll_fn(poll)).detach();
    }
}

/// What becomes of a message if it is dropped after this.
pub(crate) fn fate_of(outcome: Result<(), Refused>) -> Fate {
    if outcome == Err(Refused::Full) {
        Fate::Overflowed
    } else {
        Fate::Stopped
    }
}

/// Runs a timer on the shard that `run_there` leads to, for a caller that has none.
pub(crate) fn timer(limit: Duration, run_there: impl FnOnce(Job)) -> oneshot::Receiver<()> {
    let (mut fire, fired) = oneshot::channel();
    run_there(Box::new(move || {
        greenroom_runtime::spawn(async move {
            let mut sleep = sleep(limit);
            // Ends early when the caller has its answer, or has given up.
            poll_fn(|cx| match fire.poll_canceled(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => pin!(&mut sleep).poll(cx),
            })
            .await;
            let _unheard: Result<(), ()> = fire.send(());
        })
        .detach();
    }));
    fired
}

/// Time between two looks, at least.
const GAP: Duration = Duration::from_millis(64);
/// Asks that are kept without looking whether they were answered.
const KEPT: usize = 1024;

/// One per shard, in the runtime's extensions.
#[derive(Default)]
pub(crate) struct Watch {
    asks: RefCell<Vec<Watched>>,
    /// So many are looked through.
    full_at: Cell<usize>,
    alarm: Alarm,
}

struct Watched {
    at: Instant,
    allowance: Allowance,
    asker: oneshot::Sender<Timeout>,
}

impl Watch {
    fn current() -> Rc<Self> {
        greenroom_runtime::extension(Self::default)
    }

    /// Tells the asker when this moment has passed, unless it has its answer by then.
    pub(crate) fn over(at: Instant, allowance: Allowance, asker: oneshot::Sender<Timeout>) {
        let watch = Self::current();
        watch.asks.borrow_mut().push(Watched {
            at,
            allowance,
            asker,
        });
        let len = watch.asks.borrow().len();
        if len >= watch.full_at.get().max(KEPT) {
            watch.look();
        } else {
            watch.alarm.set_by(at, Self::ring);
        }
    }

    fn ring() {
        Self::current().look();
    }

    fn look(&self) {
        let now = Instant::now();
        let asks = std::mem::take(&mut *self.asks.borrow_mut());
        let mut waiting = Vec::new();
        // Not borrowed: to be told wakes, and a waker may be anyone's.
        for ask in asks {
            if ask.asker.is_canceled() {
                continue;
            }
            if ask.at <= now {
                // It may have its answer just now.
                tell(ask.asker, ask.allowance.passed(true));
            } else {
                waiting.push(ask);
            }
        }
        let mut asks = self.asks.borrow_mut();
        asks.append(&mut waiting);
        self.full_at.set(2 * asks.len());
        if let Some(first) = asks.iter().map(|ask| ask.at).min() {
            self.alarm.set_by(first.max(now + GAP), Self::ring);
        }
    }
}
