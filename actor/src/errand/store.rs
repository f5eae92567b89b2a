//! The table of an actor's errands, and the one way through it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use greenroom_runtime::JoinHandle;
use greenroom_runtime::time::Instant;
use slab::Slab;

use super::clock::{Alarm, Clock};
use super::handle::{Errand, Revocable};
use super::timer::Repeated;
use crate::actor::Actor;
use crate::context::Ctx;
use crate::fate::{self, Fate};
use crate::life::contain;
use crate::mailbox::Mailbox;
use crate::observe::{DeadLetterReason, report};

/// What an errand has done with the actor when it comes back.
pub(crate) type Then<A> = Box<dyn FnOnce(&mut A, &mut Ctx<A>)>;

/// What came of an errand.
pub(crate) enum Brought<A: Actor> {
    Message(A::LocalMsg),
    Call(Then<A>),
}

/// Names an errand of one actor, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ErrandId {
    pub(super) slot: u32,
    pub(super) serial: u64,
}

/// All errands of an actor. See the text of the folder.
pub(crate) struct Errands<A: Actor> {
    slots: RefCell<Slab<Slot<A>>>,
    clock: RefCell<Clock>,
    begun: Cell<u64>,
}

struct Slot<A: Actor> {
    serial: u64,
    /// Whether its letter stands in the queue.
    in_mailbox: bool,
    kind: Kind<A>,
}

enum Kind<A: Actor> {
    /// Its letter is all that is left.
    Cancelled,
    /// Comes once, when it is due.
    After(A::LocalMsg),
    /// Comes again and again.
    Every(Rc<Repeated<A>>),
    /// A task has it.
    Running(Box<Running<A>>),
}

/// What is known of a task that an actor has begun.
struct Running<A: Actor> {
    /// `None` only while it is being spawned.
    task: Option<JoinHandle<()>>,
    /// What its letter brings.
    brings: Option<Brought<A>>,
    /// Waits until that was taken.
    waiting: Option<Waker>,
    /// Brings nothing after this.
    is_over: bool,
}

/// The most timers that ripen in one activation of an actor; others follow in the next.
const RIPEN_MAX: usize = 256;

impl<A: Actor> Errands<A> {
    pub(crate) fn new() -> Self {
        Self {
            slots: RefCell::new(Slab::new()),
            clock: RefCell::new(Clock::default()),
            begun: Cell::new(0),
        }
    }

    fn insert(&self, kind: Kind<A>) -> ErrandId {
        let serial = self.begun.get();
        self.begun.set(serial + 1);
        let slot = self.slots.borrow_mut().insert(Slot {
            serial,
            in_mailbox: false,
            kind,
        });
        ErrandId {
            slot: u32::try_from(slot).expect("fewer errands than bytes of memory"),
            serial,
        }
    }

    fn handle(self: &Rc<Self>, id: ErrandId) -> Errand {
        let store: Rc<dyn Revocable> = self.clone();
        Errand::new(Rc::downgrade(&store), id)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.borrow().len()
    }

    // Timers.

    pub(super) fn begin_after(
        self: &Rc<Self>,
        mailbox: &Mailbox<A>,
        at: Instant,
        message: A::LocalMsg,
    ) -> Errand {
        let id = self.insert(Kind::After(message));
        self.set_alarm(mailbox, at, id);
        self.handle(id)
    }

    pub(super) fn begin_every(
        self: &Rc<Self>,
        mailbox: &Mailbox<A>,
        repeated: Repeated<A>,
    ) -> Errand {
        let first = repeated.due();
        let id = self.insert(Kind::Every(Rc::new(repeated)));
        self.set_alarm(mailbox, first, id);
        self.handle(id)
    }

    fn set_alarm(&self, mailbox: &Mailbox<A>, at: Instant, id: ErrandId) {
        let ErrandId { slot, serial } = id;
        let alarm = Alarm { at, serial, slot };
        self.clock.borrow_mut().set(alarm, mailbox.waker());
    }

    /// Puts the letters of timers that are due into the mailbox. Called by the actor's task, first of all.
    pub(crate) fn ripen(&self, mailbox: &Mailbox<A>) {
        if self.clock.borrow().is_empty() {
            return;
        }
        let now = Instant::now();
        self.clock.borrow_mut().disarm_passed(now);
        if !mailbox.is_open() {
            return;
        }
        for _ in 0..RIPEN_MAX {
            let Some(alarm) = self.clock.borrow_mut().pop_due(now) else {
                break;
            };
            let is_live = {
                let mut slots = self.slots.borrow_mut();
                match slots.get_mut(alarm.slot as usize) {
                    Some(slot) if slot.serial == alarm.serial && !slot.is_cancelled() => {
                        slot.in_mailbox = true;
                        true
                    }
                    _ => false,
                }
            };
            if is_live {
                mailbox.push_errand(alarm.slot);
            } else {
                self.clock.borrow_mut().took_stale();
            }
        }
        self.clock.borrow_mut().arm(mailbox.waker());
    }

    // Tasks.

    /// Makes room for a task; the caller spawns it and says so with [`Errands::running`].
    pub(super) fn begin_task(self: &Rc<Self>) -> (ErrandId, Errand) {
        let id = self.insert(Kind::Running(Box::new(Running {
            task: None,
            brings: None,
            waiting: None,
            is_over: false,
        })));
        (id, self.handle(id))
    }

    /// The task was spawned.
    pub(super) fn running(&self, id: ErrandId, task: JoinHandle<()>) {
        let mut slots = self.slots.borrow_mut();
        match slots.get_mut(id.slot as usize) {
            Some(Slot {
                serial,
                kind: Kind::Running(running),
                ..
            }) if *serial == id.serial => running.task = Some(task),
            _ => {
                // Ended by what a hook of the runtime did at the spawn.
                drop(slots);
                task.abort();
            }
        }
    }

    /// Puts what a task brings into the mailbox, when what it brought before was taken. `Err` if nothing is wanted any more.
    pub(super) fn poll_bring(
        &self,
        mailbox: &Mailbox<A>,
        id: ErrandId,
        brings: &mut Option<Brought<A>>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), Unwanted>> {
        if !mailbox.is_open() {
            return Poll::Ready(Err(Unwanted));
        }
        match self.poll_taken(id, cx) {
            Poll::Ready(Ok(())) => {}
            waits => return waits,
        }
        {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[id.slot as usize];
            let Kind::Running(running) = &mut slot.kind else {
                return Poll::Ready(Err(Unwanted));
            };
            running.brings = brings.take();
            slot.in_mailbox = true;
        }
        mailbox.push_errand(id.slot);
        Poll::Ready(Ok(()))
    }

    /// Waits until what a task brought was taken.
    pub(super) fn poll_taken(&self, id: ErrandId, cx: &Context<'_>) -> Poll<Result<(), Unwanted>> {
        let waker = cx.waker().clone();
        let mut slots = self.slots.borrow_mut();
        match slots.get_mut(id.slot as usize) {
            Some(Slot {
                serial,
                in_mailbox,
                kind: Kind::Running(running),
            }) if *serial == id.serial => {
                if !*in_mailbox {
                    return Poll::Ready(Ok(()));
                }
                let earlier = running.waiting.replace(waker);
                drop(slots);
                drop(earlier);
                Poll::Pending
            }
            _ => Poll::Ready(Err(Unwanted)),
        }
    }

    /// A task has ended, and brings nothing but what stands in the mailbox.
    pub(super) fn over(&self, id: ErrandId) {
        let mut slots = self.slots.borrow_mut();
        let removed = match slots.get_mut(id.slot as usize) {
            Some(slot) if slot.serial == id.serial => {
                if slot.in_mailbox {
                    if let Kind::Running(running) = &mut slot.kind {
                        running.is_over = true;
                    }
                    None
                } else {
                    slots.try_remove(id.slot as usize)
                }
            }
            _ => None,
        };
        drop(slots);
        drop(removed);
    }

    // Both.

    /// Takes what a letter brings; `None` if its errand was cancelled.
    pub(crate) fn take(&self, mailbox: &Mailbox<A>, slot: u32) -> Option<Brought<A>> {
        let mut slots = self.slots.borrow_mut();
        let found = slots.get_mut(slot as usize)?;
        found.in_mailbox = false;
        let id = ErrandId {
            slot,
            serial: found.serial,
        };
        match &mut found.kind {
            Kind::Every(repeated) => {
                let repeated = repeated.clone();
                drop(slots);
                self.set_alarm(mailbox, repeated.advance(), id);
                // Clones the arguments, which is anyone's code.
                Some(Brought::Message(repeated.message()))
            }
            Kind::Running(running) => {
                let brings = running.brings.take();
                let waiting = running.waiting.take();
                let over = running.is_over.then(|| slots.remove(slot as usize));
                drop(slots);
                drop(over);
                if let Some(waiting) = waiting {
                    waiting.wake();
                }
                brings
            }
            Kind::After(_) | Kind::Cancelled => {
                let taken = slots.remove(slot as usize);
                drop(slots);
                match taken.kind {
                    Kind::After(message) => Some(Brought::Message(message)),
                    _ => None,
                }
            }
        }
    }

    /// Ends all errands, those that stand in the mailbox too. Items of streams that nobody took are dead letters.
    ///
    /// Whoever waits for an answer from one of them hears that the actor was stopped, or killed if it was.
    pub(crate) fn clear(&self) {
        let mut ended = Vec::new();
        {
            let mut slots = self.slots.borrow_mut();
            slots.retain(|_, slot| {
                ended.push(std::mem::replace(&mut slot.kind, Kind::Cancelled));
                slot.in_mailbox
            });
        }
        drop(self.clock.take());
        let fate = fate::current().unwrap_or(Fate::Stopped);
        let reason = if fate == Fate::Killed {
            DeadLetterReason::Killed
        } else {
            DeadLetterReason::Stopped
        };
        fate::with(fate, || {
            for kind in ended {
                if let Some(item) = kind.item() {
                    report::<A>(item, reason);
                }
                contain(|| kind.end());
            }
        });
    }
}

/// The actor takes no more, or the errand was cancelled.
#[derive(Debug)]
pub(super) struct Unwanted;

impl<A: Actor> Slot<A> {
    fn is_cancelled(&self) -> bool {
        matches!(self.kind, Kind::Cancelled)
    }
}

impl<A: Actor> Kind<A> {
    /// The item of a stream that lies here, and that nobody has handled.
    fn item(&self) -> Option<&A::LocalMsg> {
        match self {
            Self::Running(running) => match &running.brings {
                Some(Brought::Message(item)) => Some(item),
                _ => None,
            },
            _ => None,
        }
    }

    /// Out of every borrow: runs destructors of the user.
    fn end(self) {
        if let Self::Running(mut running) = self
            && let Some(task) = running.task.take()
        {
            task.abort();
        }
    }
}

impl<A: Actor> Revocable for Errands<A> {
    fn cancel(&self, id: ErrandId) -> bool {
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots
            .get_mut(id.slot as usize)
            .filter(|slot| slot.serial == id.serial && !slot.is_cancelled())
        else {
            return false;
        };
        let was_armed = !slot.in_mailbox && matches!(slot.kind, Kind::After(_) | Kind::Every(_));
        let kind = if slot.in_mailbox {
            std::mem::replace(&mut slot.kind, Kind::Cancelled)
        } else {
            slots.remove(id.slot as usize).kind
        };
        if was_armed {
            self.clock.borrow_mut().forget_one(|alarm| {
                slots
                    .get(alarm.slot as usize)
                    .is_some_and(|slot| slot.serial == alarm.serial)
            });
        }
        drop(slots);
        kind.end();
        true
    }

    fn is_active(&self, id: ErrandId) -> bool {
        self.slots
            .borrow()
            .get(id.slot as usize)
            .is_some_and(|slot| slot.serial == id.serial && !slot.is_cancelled())
    }
}

impl<A: Actor> std::fmt::Debug for Errands<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Errands")
            .field("actor", &A::NAME)
            .finish_non_exhaustive()
    }
}
