//! Many at once: groups of actors, and topics with subscribers.
//!
//! Both have a *branch* on each shard that has members: a resident, with those who are there. What goes to all of them is
//! one record to each branch, and is handed on where it arrives. A branch is changed by its own shard alone, when an actor
//! joins, leaves or ends.
//!
//! * [`branches`]: what is the same for both: which branches there are, and how something gets to each of them.
//! * [`topic`], [`subscription`]: values for whoever wants them, and queues of those who are slow.
//! * [`group`]: actors of one type, and calls to all of them.
//! * [`by_name`]: groups and topics that are found by name.

mod branches;
mod by_name;
mod group;
mod subscription;
mod topic;

pub use self::by_name::CrowdError;
pub use self::group::{Broadcast, Group};
pub use self::subscription::{News, Subscription};
pub use self::topic::{PublishWhenRoom, Topic};
