//! What the user holds of an errand.

use std::fmt;
use std::rc::Weak;

use super::store::ErrandId;

/// A table of errands, whatever the actor.
pub(super) trait Revocable {
    fn cancel(&self, id: ErrandId) -> bool;
    fn is_active(&self, id: ErrandId) -> bool;
}

/// A handle on something that an actor has begun: a timer, a piped future, a stream, a task.
///
/// It can be dropped at any time, which changes nothing: the errand belongs to its actor and ends with it.
///
/// # Shard affinity
/// `!Send`: it stays on the actor's shard.
///
/// # Examples
/// ```
/// use greenroom::{Errand, prelude::*};
/// use std::time::Duration;
///
/// /// Closes itself when nobody has spoken for a while.
/// #[derive(Default)]
/// struct Session { limit: Option<Errand> }
///
/// #[actor]
/// impl Session {
///     pub fn said(&mut self, ctx: &mut Ctx<Self>) {
///         if let Some(limit) = self.limit.take() { limit.cancel(); }
///         self.limit = Some(ctx.after(Duration::from_millis(5)).silent());
///     }
///     #[message]
///     fn silent(&mut self, ctx: &mut Ctx<Self>) { ctx.stop(); }
/// }
/// ```
pub struct Errand {
    store: Weak<dyn Revocable>,
    id: ErrandId,
}

impl Errand {
    pub(super) fn new(store: Weak<dyn Revocable>, id: ErrandId) -> Self {
        Self { store, id }
    }

    /// Ends it. False if it had ended before.
    ///
    /// When this returns, it will not be heard of again: not of a tick, an item or an output that stands in the mailbox
    /// already either. What it held was dropped, the future of a task included, unless that task itself calls this: then
    /// it is dropped when it next waits.
    pub fn cancel(&self) -> bool {
        self.store
            .upgrade()
            .is_some_and(|store| store.cancel(self.id))
    }

    /// Whether something is still to come of it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.store
            .upgrade()
            .is_some_and(|store| store.is_active(self.id))
    }
}

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Errand")
            .field("number", &self.id.serial)
            .field("active", &self.is_active())
            .finish()
    }
}
