//! Shard to shard: typed records in rings, and the things they are addressed to.
//!
//! Every ordered pair of shards of one runtime has a [`ring`], made when it is first used. A record is written in place
//! by the sending shard and stays invisible until the shard publishes, once a turn. The receiving shard moves each
//! record to where it belongs (a [`Resident`], a reply slot, the loop itself) and frees its place in the ring at once:
//! a link is never held by a handler.
//!
//! * [`resident`]: values that live on a shard and take messages; named by a [`ResidentId`].
//! * [`outside`]: what threads that are no shards do there.
//! * [`homeward`]: what nobody took goes back to its sender.
//! * [`reply`]: one-shot slots on the asking shard that an answer is written into.
//! * [`at_once`]: the same for an asker that is still on the stack.
//! * [`link`]: the sending side of a pair: ring, what did not fit, who waits, which residents are choked.
//! * [`block`]: memory for records that are too large for the ring.
//! * [`lane`]: urgent messages, and all others.
//! * [`fifo`]: where messages wait on the shard of whom they are for.
//! * [`record`]: how a typed value gets into a ring and out again.
//! * [`cross`]: the proof, made at compile time, that a value may change its thread.
//! * [`wait`]: first come, first served.
//!
//! # Bounds
//! A pair holds at most one ring ([`crate::Builder::link_bytes`]) of messages in flight, and blocks of four times that
//! for those which are larger than 256 bytes. Records that must not wait
//! (answers, chokes, stops) go to a spill queue when the ring is full; there is at most one per ask, per choked
//! resident and per stop under way.

pub(crate) mod at_once;
pub(crate) mod block;
pub(crate) mod cross;
mod fifo;
mod homeward;
pub(crate) mod lane;
pub(crate) mod link;
mod outside;
pub(crate) mod record;
pub(crate) mod reply;
pub(crate) mod resident;
pub(crate) mod ring;
pub(crate) mod team;
pub(crate) mod traffic;
pub(crate) mod wait;

pub use at_once::answer_at_once;
pub use cross::{Cross, CrossShard};
pub use fifo::Fifo;
pub use lane::Lane;
pub use link::{Admission, Refusal};
pub use outside::OutsidePass;
pub use reply::{
    AskId, AskNote, Due, OutsideReply, ReplyKey, ReplySlot, Unanswered, open, open_outside,
    usual_limit,
};
pub use resident::{Flow, Origin, Resident, ResidentId, Route, evict, leave, settle};
pub use traffic::{Traffic, traffic};
pub use wait::{Ticket, WaitList};
