//! The mailbox: what an actor was sent and has not handled.
//!
//! # Who may touch it
//! A mailbox lives on its actor's shard and is touched by that thread only: by senders there, by the loop when it
//! delivers what came from elsewhere, and by the actor's own task. No borrow is held while user code runs.
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

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_channel::oneshot;
use greenroom_runtime::JoinHandle;
use greenroom_runtime::mesh::{Origin, Resident, ResidentId, Ticket, WaitList};

use crate::actor::Actor;
use crate::address::{Outside, Refused};
use crate::fate::{self, Fate};
use crate::registry::{AnyActor, Registry};

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

/// The mailbox of one actor.
#[doc(hidden)]
pub struct Mailbox<A: Actor> {
    queue: RefCell<VecDeque<Letter<A>>>,
    phase: Cell<Phase>,
    /// The actor's task waits for a letter.
    idle: Cell<bool>,
    /// One of the actor's own handlers is being polled: whoever sends now is the actor itself.
    handling: Cell<bool>,
    /// The end is to be immediate.
    killed: Cell<bool>,
    /// The actor's task, once it was polled.
    waker: OnceCell<Waker>,
    /// For `kill`; taken out when the actor ends.
    task: Cell<Option<JoinHandle<()>>>,
    id: OnceCell<ResidentId<Mailbox<A>>>,
    /// Senders on this shard that wait for room, and everything else that is seldom used. Made when first needed.
    rare: OnceCell<Box<Rare>>,
}

#[derive(Debug, Default)]
struct Rare {
    waiting: WaitList,
    /// The front of the line was woken and has not been polled since.
    called: Cell<bool>,
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
    pub(crate) fn new() -> Self {
        Self {
            queue: RefCell::new(VecDeque::new()),
            phase: Cell::new(Phase::Open),
            idle: Cell::new(false),
            handling: Cell::new(false),
            killed: Cell::new(false),
            waker: OnceCell::new(),
            task: Cell::new(None),
            id: OnceCell::new(),
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

    fn nobody_waits(&self) -> bool {
        self.rare.get().is_none_or(|rare| rare.waiting.is_empty())
    }

    /// Accepts a message if there is room and nobody waits for it; `build` runs only then.
    #[inline]
    pub(crate) fn try_push(&self, build: impl FnOnce() -> Letter<A>) -> Result<(), Refused> {
        if self.phase.get() != Phase::Open {
            return Err(Refused::Stopped);
        }
        {
            let mut queue = self.queue.borrow_mut();
            if queue.len() >= A::MAILBOX || !self.nobody_waits() {
                return Err(Refused::Full);
            }
            queue.push_back(build());
        }
        self.wake();
        Ok(())
    }

    /// Accepts a message when it is this sender's turn.
    pub(crate) fn poll_push(
        &self,
        place: &mut Option<Ticket>,
        cx: &mut Context<'_>,
        build: impl FnOnce() -> Letter<A>,
    ) -> Poll<Result<(), Refused>> {
        if self.phase.get() != Phase::Open {
            *place = None;
            return Poll::Ready(Err(Refused::Stopped));
        }
        if let Some(rare) = self.rare.get() {
            rare.called.set(false);
        }
        let mut queue = self.queue.borrow_mut();
        let my_turn = self
            .rare
            .get()
            .is_none_or(|rare| rare.waiting.may_pass(*place));
        if queue.len() < A::MAILBOX && my_turn {
            queue.push_back(build());
            let more = queue.len() < A::MAILBOX;
            drop(queue);
            if let Some(ticket) = place.take() {
                self.rare().waiting.leave(ticket);
            }
            if more && !self.nobody_waits() {
                self.call_front();
            }
            self.wake();
            return Poll::Ready(Ok(()));
        }
        drop(queue);
        if self.handling.get() {
            // Room comes when the handler ends, and the handler would wait for room.
            if let Some(ticket) = place.take() {
                self.leave(ticket);
            }
            return Poll::Ready(Err(Refused::Full));
        }
        *place = Some(self.rare().waiting.join(*place, cx.waker()));
        Poll::Pending
    }

    /// A sender gives its place in the line up.
    pub(crate) fn leave(&self, ticket: Ticket) {
        self.rare().waiting.leave(ticket);
        // If room was meant for it, the next one takes it.
        self.call_front();
    }

    fn call_front(&self) {
        self.rare().called.set(true);
        self.rare().waiting.wake_front();
    }

    #[inline]
    fn wake(&self) {
        if self.idle.replace(false)
            && let Some(waker) = self.waker.get()
        {
            waker.wake_by_ref();
        }
    }

    /// Takes the next letter. Room that this makes is passed on.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Letter<A>> {
        let (letter, left) = {
            let mut queue = self.queue.borrow_mut();
            (queue.pop_front()?, queue.len())
        };
        if self.rare.get().is_some() {
            self.make_room_known(left);
        }
        Some(letter)
    }

    #[cold]
    fn make_room_known(&self, left: usize) {
        let rare = self.rare();
        if left < A::MAILBOX && !rare.waiting.is_empty() && !rare.called.replace(true) {
            rare.waiting.wake_front();
        }
        if left <= A::MAILBOX / 2 && !rare.choked.borrow().is_empty() {
            let choked = std::mem::take(&mut *rare.choked.borrow_mut());
            for origin in choked {
                origin.unchoke(self.id());
            }
        }
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
            self.idle.set(true);
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
        self.handling.set(true);
        let result = poll();
        self.handling.set(false);
        result
    }

    /// Whether the actor's own shard asked for its immediate end.
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.get()
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
        if self.phase.get() == Phase::Closed || self.killed.replace(true) {
            return;
        }
        self.phase.set(Phase::Draining);
        if let Some(task) = self.task.take() {
            // Kills happen inside drops too, whose fate is not to end with this one.
            let announced = fate::current();
            // From inside the actor itself this takes effect when its poll returns.
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
                *place = Some(rare.waiting.join(*place, cx.waker()));
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

/// A message that comes the long way: undeliverable wherever it is dropped on it.
pub(crate) struct FromOutside<A: Actor> {
    id: ResidentId<Mailbox<A>>,
    /// Gone once it is in the mailbox.
    env: Option<A::Msg>,
    place: Option<Ticket>,
    sent: Outside,
}

impl<A: Actor> FromOutside<A> {
    pub(crate) fn new(id: ResidentId<Mailbox<A>>, env: A::Msg, sent: Outside) -> Self {
        Self {
            id,
            env: Some(env),
            place: None,
            sent,
        }
    }

    /// Goes into the mailbox, on the actor's shard. If there is no room its place in line is taken at once, which keeps
    /// such messages in order, and a task waits in it.
    pub(crate) fn arrive(mut self) {
        if self
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
        {
            greenroom_runtime::spawn(std::future::poll_fn(move |cx| self.poll(cx))).detach();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            id,
            env,
            place,
            sent,
        } = self;
        if let Outside::Waiting(sender) = sent
            && sender.poll_canceled(cx).is_ready()
        {
            // Its sender has given up: nothing is sent.
            if let Some(ticket) = place.take() {
                id.visit(|mailbox| mailbox.leave(ticket));
            }
            crate::life::contain(|| drop(env.take()));
            return Poll::Ready(());
        }
        let pushed = id.visit(|mailbox| {
            let build = || Letter::Message(env.take().expect("built once").into());
            mailbox.poll_push(place, cx, build)
        });
        match pushed {
            Some(Poll::Pending) => return Poll::Pending,
            Some(Poll::Ready(Ok(()))) => {
                if let Outside::Waiting(sender) = std::mem::replace(sent, Outside::Done) {
                    // The sender may have given up just now.
                    let _unheard: Result<(), ()> = sender.send(());
                }
            }
            // Disposed of by the drop of this value.
            Some(Poll::Ready(Err(_))) | None => {}
        }
        Poll::Ready(())
    }
}

impl<A: Actor> Drop for FromOutside<A> {
    fn drop(&mut self) {
        let Some(env) = self.env.take() else {
            return;
        };
        if self.id.is_of_the_past() {
            // No dead letter of the system that has the shard's number now.
            fate::with(Fate::Stopped, || crate::life::contain(|| drop(env)));
        } else {
            <Mailbox<A> as Resident>::undeliverable(Parcel::Message(env));
        }
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
pub(crate) fn settle<A: Actor>() -> Rc<Mailbox<A>> {
    let mailbox = Rc::new(Mailbox::new());
    let id = greenroom_runtime::mesh::settle(mailbox.clone());
    mailbox.install(id);
    mailbox
}
