//! What ties an actor to others. Most actors have no ties.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use futures_channel::oneshot;

use super::children::Children;
use super::control::{AnyAddr, GoOn};
use super::exit::{ChildExit, Down, ExitReason};
use super::told::ToldError;
use super::watch::{Concerns, Watchers};

/// Something that happened, on its way to a hook.
pub(crate) enum Event {
    Down(Down),
    ChildExit(ChildExit),
    Error(ToldError),
}

/// The parent of a child, and the place of the child there.
#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) addr: Box<dyn AnyAddr>,
    pub(crate) place: u64,
}

/// The rare part of an actor's life, made when first needed.
#[derive(Default)]
pub(crate) struct Bonds {
    /// Why the actor, or its incarnation, ends, if not because it was asked to.
    pub(crate) reason: RefCell<Option<ExitReason>>,
    pub(crate) watchers: RefCell<Watchers>,
    pub(crate) concerns: RefCell<Concerns>,
    pub(crate) events: RefCell<VecDeque<Event>>,
    pub(crate) children: Children,
    pub(crate) parent: RefCell<Option<Parent>>,
    /// The `Lineage` of a child, until its first incarnation has ended.
    pub(crate) lineage: Cell<Option<Box<dyn Any>>>,
    /// Who waits until the actor has halted.
    pub(crate) halt: RefCell<Option<oneshot::Sender<GoOn>>>,
    /// How long a stop may take, if not as long as the system says.
    pub(crate) grace: Cell<Option<Duration>>,
    pub(crate) incarnation: Cell<u32>,
    /// Whoever spawned it knows that it did not start.
    pub(crate) is_reported: Cell<bool>,
    /// It has failed too often, and its parent fails with it.
    pub(crate) escalates: Cell<bool>,
}

impl std::fmt::Debug for Bonds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bonds").finish_non_exhaustive()
    }
}
