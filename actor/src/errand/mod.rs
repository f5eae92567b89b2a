//! Errands: what an actor has begun itself, and what comes back to it.
//!
//! A timer, a future whose output is awaited, a stream whose items are messages, a task: the actor goes on, and what
//! comes of the errand enters its mailbox like a message, behind what was accepted before.
//!
//! # Who owns it
//! The incarnation of the actor that began it. [`Errands`] is made with the first one, is touched by the actor's thread
//! only, and is emptied when the incarnation ends, before its state is dropped. Tasks are aborted, timers forgotten. A handle
//! is a name and keeps nothing alive; neither does an errand keep its actor alive.
//!
//! # States
//! ```text
//!            due, done, an item
//!  Out ───────────────────────────► In the mailbox ───taken───► gone, or Out again
//!   │                                     │
//!   └──────────────── cancel, end of the incarnation ──► gone
//! ```
//! *Out*: the clock or a task has it; the mailbox knows nothing of it. *In the mailbox*: one letter stands in the queue,
//! with the slot of the errand and nothing else; what it brings lies in the slot. An errand has at most one letter, so
//! what errands add to a mailbox beyond its bound is at most one letter for each. A slot is used again only when its letter was
//! taken: a cancelled errand whose letter stands in the queue leaves its slot behind, empty.
//!
//! # Reading order
//! `store` is the table of errands and the way through it; `clock` says which timer is due; `timer`, `work` and `stream`
//! are the kinds; `handle` is what the user holds.

mod clock;
mod handle;
mod store;
mod stream;
mod timer;
mod work;

pub use self::handle::Errand;
pub(crate) use self::store::{Brought, Errands};
pub use self::stream::{Compose, Composed, Forward};
pub use self::timer::{After, Every};
pub(crate) use self::work::caught;
