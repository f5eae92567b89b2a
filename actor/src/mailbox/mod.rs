//! The mailbox: what an actor was sent and has not handled, and the actor itself.
//!
//! # Who may touch it
//! A mailbox lives on its actor's shard and is touched by that thread only: by senders there, by the loop when it
//! delivers what came from elsewhere, and by the actor's own task. No borrow is held while user code runs, but for one:
//! whoever runs a handler borrows the state of the actor until the handler has ended, and this is what makes handlers
//! run one at a time.
//!
//! # Who runs a handler
//! The actor's task, message after message. But if the actor is *idle* (its task waits, the queue is empty, nobody waits
//! in line) a message with a synchronous handler need not go through the queue: an ask of the same shard is handled on
//! the asker's stack, a message of another shard where it arrives. Order is kept because there is nothing to overtake;
//! fairness because both ways are rationed, by the asker's budget and by the turn's.
//!
//! # Order and bound
//! Messages are handled in the order they were accepted. A sender on the shard is accepted while the mailbox holds
//! fewer than its bound; after that senders wait in line. A message from another shard was accepted when it entered the
//! link, so on arrival it always goes in, beyond the bound if need be; the mailbox then *chokes* its shard, which holds
//! further ones back until half of the bound is free. Beyond the bound there is at most what the links held.
//!
//! # Phases
//! ```text
//!  Open ──stop──► Draining ──► Closed          (Open ──kill, panic──► Closed)
//! ```
//! *Draining* refuses new sends, and the stop stands in the queue behind what was accepted before it. *Closed* means
//! the actor is gone: the queue is empty, everyone who waited has been told, and arrivals are undeliverable.

mod outside;

pub(crate) use self::outside::FromOutside;

use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_channel::oneshot;
use greenroom_runtime::JoinHandle;
use greenroom_runtime::mesh::{Origin, Resident, ResidentId, Ticket, WaitList, answer_at_once};

use crate::actor::Actor;
use crate::address::Refused;
use crate::context::Ctx;
use crate::fate::{self, Fate};
use crate::registry::{AnyActor, Registry};
use crate::reply::{Answer, Failure, Reply};

/// What stands in a mailbox.
pub(crate) enum Letter<A: Actor> {
    Message(A::LocalMsg),
    /// Everything before this is handled, nothing after it.
    Stop,
}

/// What travels to a mailbox.
#[doc(hidden)]
pub enum Parcel<A: Actor> {
    Message(A::Msg),
    Stop,
    Kill,
    /// Dropped when the actor has ended.
    Watch(oneshot::Sender<()>),
}

impl<A: Actor> std::fmt::Debug for Parcel<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Message(_) => "Message",
            Self::Stop => "Stop",
            Self::Kill => "Kill",
            Self::Watch(_) => "Watch",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Draining,
    Closed,
}

/// What the actor is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// Its task waits for a letter. Invariant: the queue is empty, and no handler runs.
    Idle,
    /// Its task is ready, or runs, or waits for something inside of a handler.
    Busy,
    /// One of its asynchronous handlers is being polled: whoever sends now is the actor itself.
    Polling,
    /// A handler runs on the stack of its asker; its task waits.
    AtOnce,
}

/// Why an actor ends without having been asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Killed,
    /// A handler that ran at once panicked.
    Panicked,
}

/// An actor and its mailbox.
#[doc(hidden)]
pub struct Mailbox<A: Actor> {
    /// The actor itself, until it ends. Borrowed by whoever runs a handler, for as long as the handler runs.
    state: RefCell<Option<A>>,
    queue: RefCell<VecDeque<Letter<A>>>,
    phase: Cell<Phase>,
    activity: Cell<Activity>,
    /// What ends it, if not a stop.
    verdict: Cell<Option<Verdict>>,
    /// The actor's task, once it was polled.
    waker: OnceCell<Waker>,
    /// For `kill`; taken out when the actor ends.
    task: Cell<Option<JoinHandle<()>>>,
    id: OnceCell<ResidentId<Mailbox<A>>>,
    /// Room that comes free is to be made known: to a front of the line that was not called yet, or to a choked shard.
    room_wanted: Cell<bool>,
    /// Senders on this shard that wait for room, and everything else that is seldom used. Made when first needed.
    rare: OnceCell<Box<Rare>>,
}

#[derive(Debug, Default)]
struct Rare {
    waiting: WaitList,
    choked: RefCell<Vec<Origin>>,
    watchers: RefCell<Vec<oneshot::Sender<()>>>,
}

impl<A: Actor> std::fmt::Debug for Mailbox<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox")
            .field("actor", &A::NAME)
            .field("phase", &self.phase.get())
            .finish_non_exhaustive()
    }
}

impl<A: Actor> Mailbox<A> {
    pub(crate) fn new(actor: A) -> Self {
        Self {
            state: RefCell::new(Some(actor)),
            queue: RefCell::new(VecDeque::new()),
            phase: Cell::new(Phase::Open),
            activity: Cell::new(Activity::Busy),
            verdict: Cell::new(None),
            waker: OnceCell::new(),
            task: Cell::new(None),
            id: OnceCell::new(),
            room_wanted: Cell::new(false),
            rare: OnceCell::new(),
        }
    }

    /// Tells the mailbox its name, before anything can be sent to it.
    pub(crate) fn install(&self, id: ResidentId<Self>) {
        self.id.set(id).expect("a mailbox is settled once");
    }

    pub(crate) fn set_task(&self, task: JoinHandle<()>) {
        self.task.set(Some(task));
    }

    pub(crate) fn id(&self) -> ResidentId<Self> {
        *self
            .id
            .get()
            .expect("a mailbox is settled before its actor runs")
    }

    fn rare(&self) -> &Rare {
        self.rare.get_or_init(Box::default)
    }

    #[inline]
    fn nobody_waits(&self) -> bool {
        self.rare.get().is_none_or(|rare| rare.waiting.is_empty())
    }

    /// Accepts a message if there is room and nobody waits for it; `build` runs only then.
    #[inline]
    pub(crate) fn try_push(&self, build: impl FnOnce() -> A::LocalMsg) -> Result<(), Refused> {
        if self.phase.get() != Phase::Open {
            return Err(Refused::Stopped);
        }
        {
            let mut queue = self.queue.borrow_mut();
            if queue.len() >= A::MAILBOX || !self.nobody_waits() {
                return Err(Refused::Full);
            }
            queue.push_back(Letter::Message(build()));
        }
        self.wake();
        Ok(())
    }

    /// Asks an actor that has nothing else to do: the message is handled, and answered, before this returns. `build` runs
    /// only then.
    ///
    /// Every rule of the queue holds: it is empty and nobody waits, so nothing is overtaken; and a task gets no more
    /// answers at once than its budget of ready operations allows. The handler must be synchronous.
    #[inline]
    pub(crate) fn ask_at_once<R: 'static>(
        &self,
        build: impl FnOnce(Reply<R>) -> A::LocalMsg,
    ) -> Option<Answer<R>> {
        if !self.may_handle_at_once() {
            return None;
        }
        let answer = answer_at_once(|key| self.handle_at_once(build(Reply::to(key))))?;
        Some(answer.unwrap_or(Err(Failure::NoReply)))
    }

    #[inline]
    fn may_handle_at_once(&self) -> bool {
        self.activity.get() == Activity::Idle
            && self.phase.get() == Phase::Open
            && self.nobody_waits()
            && !fate::is_decided()
    }

    /// Handles a message on the caller's stack, or queues it if its handler is asynchronous. Only for an idle actor.
    #[inline]
    fn handle_at_once(&self, message: A::LocalMsg) {
        self.activity.set(Activity::AtOnce);
        let handled = catch_unwind(AssertUnwindSafe(|| {
            self.state().dispatch_now(message, &mut Ctx::new(self.id()))
        }));
        match handled {
            Ok(None) => {}
            Ok(Some(message)) => self.queue.borrow_mut().push_back(Letter::Message(message)),
            Err(payload) => {
                // First: the drop of a payload is anyone's code, and may send to this actor.
                self.verdict
                    .set(self.verdict.get().or(Some(Verdict::Panicked)));
                // The asker has it from the drop of its reply.
                drop(fate::report(payload));
            }
        }
        self.activity.set(Activity::Idle);
        match self.verdict.get() {
            None if self.queue.borrow().is_empty() => {}
            None => self.wake(),
            Some(Verdict::Killed) => self.abort(),
            Some(Verdict::Panicked) => self.stop_now(),
        }
    }

    /// Accepts a message when it is this sender's turn.
    pub(crate) fn poll_push(
        &self,
        place: &mut Option<Ticket>,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> A::LocalMsg,
    ) -> Poll<Result<(), Refused>> {
        if self.phase.get() != Phase::Open {
            *place = None;
            return Poll::Ready(Err(Refused::Stopped));
        }
        let mut queue = self.queue.borrow_mut();
        let my_turn = self
            .rare
            .get()
            .is_none_or(|rare| rare.waiting.may_pass(*place));
        if queue.len() < A::MAILBOX && my_turn {
            queue.push_back(Letter::Message(build()));
            let more = queue.len() < A::MAILBOX;
            drop(queue);
            if let Some(ticket) = place.take() {
                self.rare().waiting.leave(ticket);
            }
            if !self.nobody_waits() {
                if more {
                    self.call_front();
                } else {
                    self.room_wanted.set(true);
                }
            }
            self.wake();
            return Poll::Ready(Ok(()));
        }
        drop(queue);
        if self.activity.get() == Activity::Polling {
            // Room comes when the handler ends, and the handler would wait for room.
            if let Some(ticket) = place.take() {
                self.leave(ticket);
            }
            return Poll::Ready(Err(Refused::Full));
        }
        *place = Some(self.join_line(*place, cx));
        Poll::Pending
    }

    fn join_line(&self, place: Option<Ticket>, cx: &Context<'_>) -> Ticket {
        self.room_wanted.set(true);
        self.rare().waiting.join(place, cx.waker())
    }

    /// A sender gives its place in the line up.
    pub(crate) fn leave(&self, ticket: Ticket) {
        self.rare().waiting.leave(ticket);
        // If room was meant for it, the next one takes it.
        self.call_front();
    }

    /// The front of the line comes and takes the room there is, or waits for the next.
    fn call_front(&self) {
        self.rare().waiting.wake_front();
    }

    #[inline]
    fn wake(&self) {
        if self.activity.get() == Activity::Idle {
            self.activity.set(Activity::Busy);
            if let Some(waker) = self.waker.get() {
                waker.wake_by_ref();
            }
        }
    }

    /// Takes the next letter. Room that this makes is passed on.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Letter<A>> {
        let (letter, left) = {
            let mut queue = self.queue.borrow_mut();
            (queue.pop_front()?, queue.len())
        };
        if self.room_wanted.get() {
            self.make_room_known(left);
        }
        Some(letter)
    }

    #[cold]
    fn make_room_known(&self, left: usize) {
        let rare = self.rare();
        // Beyond the bound, with what came from elsewhere, this made no room yet.
        let has_room = left < A::MAILBOX;
        if has_room {
            // Called once: it asks again if it does not get in.
            self.call_front();
        }
        if left <= A::MAILBOX / 2 && !rare.choked.borrow().is_empty() {
            let choked = std::mem::take(&mut *rare.choked.borrow_mut());
            for origin in choked {
                origin.unchoke(self.id());
            }
        }
        let is_uncalled = !has_room && !rare.waiting.is_empty();
        self.room_wanted
            .set(is_uncalled || !rare.choked.borrow().is_empty());
    }

    /// Waits until there is a letter.
    pub(crate) async fn filled(&self) {
        std::future::poll_fn(|cx| {
            if !self.queue.borrow().is_empty() {
                return Poll::Ready(());
            }
            if self.waker.get().is_none() {
                // The task's own waker never changes.
                drop(self.waker.set(cx.waker().clone()));
            }
            self.activity.set(Activity::Idle);
            self.release_burst();
            Poll::Pending
        })
        .await;
    }

    /// Gives back what a burst made the queue grow to.
    fn release_burst(&self) {
        const KEPT: usize = 64;
        let mut queue = self.queue.borrow_mut();
        if queue.capacity() > 4 * KEPT.max(A::MAILBOX.min(1024)) {
            queue.shrink_to(KEPT);
        }
    }

    /// Polls one of the actor's own handlers.
    pub(crate) fn while_handling<R>(&self, poll: impl FnOnce() -> R) -> R {
        self.activity.set(Activity::Polling);
        let result = poll();
        self.activity.set(Activity::Busy);
        result
    }

    /// What ends the actor, if not a stop.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.verdict.get()
    }

    /// The actor itself, to be held for as long as a handler runs: also while it waits, for the borrow is what keeps
    /// every other handler out.
    #[inline]
    pub(crate) fn state(&self) -> RefMut<'_, A> {
        RefMut::map(self.state.borrow_mut(), |state| {
            state.as_mut().expect("an actor stays until it ends")
        })
    }

    /// No more sends; what was accepted before is still handled.
    pub(crate) fn stop(&self) {
        if self.phase.get() != Phase::Open {
            return;
        }
        self.phase.set(Phase::Draining);
        self.queue.borrow_mut().push_back(Letter::Stop);
        self.refuse_waiting();
        self.wake();
    }

    /// No more sends, and nothing more is handled.
    pub(crate) fn stop_now(&self) {
        if self.phase.get() == Phase::Open {
            self.phase.set(Phase::Draining);
            self.refuse_waiting();
        }
        self.queue.borrow_mut().push_front(Letter::Stop);
        self.wake();
    }

    pub(crate) fn kill(&self) {
        if self.phase.get() == Phase::Closed || self.verdict.get().is_some() {
            return;
        }
        self.verdict.set(Some(Verdict::Killed));
        self.phase.set(Phase::Draining);
        if self.activity.get() != Activity::AtOnce {
            self.abort();
        }
    }

    /// Cancels the actor's task. From inside the task this takes effect when its poll returns.
    fn abort(&self) {
        if let Some(task) = self.task.take() {
            // Kills happen inside drops too, whose fate is not to end with this one.
            let announced = fate::current();
            task.abort();
            fate::set(announced);
        }
    }

    /// Everyone in line comes and sees that the actor takes no more.
    fn refuse_waiting(&self) {
        if let Some(rare) = self.rare.get() {
            rare.waiting.wake_all();
        }
    }

    /// Ends the actor itself. No handler runs any more: what ran was dropped before, with its borrow.
    pub(crate) fn drop_actor(&self) {
        let actor = self.state.take();
        crate::life::contain(|| drop(actor));
    }

    /// The actor is gone: hands back everything that was accepted and not handled. Returns how many messages.
    pub(crate) fn close(&self) -> usize {
        self.phase.set(Phase::Closed);
        let letters = std::mem::take(&mut *self.queue.borrow_mut());
        let undelivered = letters
            .iter()
            .filter(|letter| matches!(letter, Letter::Message(_)))
            .count();
        fate::with(Fate::Stopped, || {
            for letter in letters {
                crate::life::contain(|| drop(letter));
            }
        });
        self.refuse_waiting();
        if let Some(rare) = self.rare.get() {
            for origin in std::mem::take(&mut *rare.choked.borrow_mut()) {
                origin.dismiss(self.id());
            }
            // Out of the borrow: hearing of the end may run foreign code.
            let watchers = std::mem::take(&mut *rare.watchers.borrow_mut());
            crate::life::contain(|| drop(watchers));
        }
        self.task.take();
        undelivered
    }

    fn watch(&self, ended: oneshot::Sender<()>) {
        self.rare().watchers.borrow_mut().push(ended);
    }

    /// Stops the actor for a caller outside, whose messages may stand in the line: the stop takes its place behind them.
    pub(crate) fn stop_outside(id: ResidentId<Self>) {
        let mut place = None;
        let mut poll = move |cx: &mut Context<'_>| {
            let polled = id.visit(|mailbox| mailbox.poll_stop(&mut place, cx));
            polled.unwrap_or(Poll::Ready(()))
        };
        if poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            greenroom_runtime::spawn(std::future::poll_fn(poll)).detach();
        }
    }

    fn poll_stop(&self, place: &mut Option<Ticket>, cx: &mut Context<'_>) -> Poll<()> {
        if self.phase.get() == Phase::Open {
            if let Some(rare) = self.rare.get()
                && !rare.waiting.may_pass(*place)
            {
                *place = Some(self.join_line(*place, cx));
                return Poll::Pending;
            }
            self.stop();
        }
        if let Some(ticket) = place.take() {
            self.rare().waiting.leave(ticket);
        }
        Poll::Ready(())
    }
}

impl<A: Actor> Resident for Mailbox<A> {
    type Message = Parcel<A>;

    #[inline]
    fn deliver(&self, parcel: Parcel<A>, origin: Origin) {
        match parcel {
            Parcel::Message(message) => {
                if self.phase.get() != Phase::Open {
                    return Self::undeliverable(Parcel::Message(message));
                }
                if self.may_handle_at_once() && origin.may_work_now() {
                    return self.handle_at_once(message.into());
                }
                let len = {
                    let mut queue = self.queue.borrow_mut();
                    queue.push_back(Letter::Message(message.into()));
                    queue.len()
                };
                if len >= A::MAILBOX {
                    self.choke(origin);
                }
                self.wake();
            }
            Parcel::Stop => self.stop(),
            Parcel::Kill => self.kill(),
            Parcel::Watch(ended) => self.watch(ended),
        }
    }

    fn undeliverable(parcel: Parcel<A>) {
        if matches!(parcel, Parcel::Message(_)) {
            Registry::with(|registry| registry.count_dead_letters(1));
        }
        fate::with(Fate::Stopped, || crate::life::contain(|| drop(parcel)));
    }
}

impl<A: Actor> Mailbox<A> {
    #[cold]
    fn choke(&self, origin: Origin) {
        let mut choked = self.rare().choked.borrow_mut();
        if !choked.contains(&origin) {
            choked.push(origin);
            drop(choked);
            self.room_wanted.set(true);
            origin.choke(self.id());
        }
    }
}

impl<A: Actor> AnyActor for Mailbox<A> {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn stop(&self) {
        Self::stop(self);
    }

    fn kill(&self) {
        Self::kill(self);
    }

    fn queued(&self) -> usize {
        self.queue.borrow().len()
    }
}

/// Puts a mailbox into the shard's tables.
pub(crate) fn settle<A: Actor>(actor: A) -> Rc<Mailbox<A>> {
    let mailbox = Rc::new(Mailbox::new(actor));
    let id = greenroom_runtime::mesh::settle(mailbox.clone());
    mailbox.install(id);
    mailbox
}
