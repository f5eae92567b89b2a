//! The injector: how other threads give a shard something to do, and how they wake it.
//!
//! A shard owns its tasks alone. What other threads may touch is small and stands here:
//!
//! * [`handshake`] — one word per shard that says whether there is news and whether the shard
//!   sleeps. It decides who rings the doorbell, and that exactly one does. Read it first.
//! * [`queue`] — values from any thread to the shard: unbounded, closable, first in first out.
//! * [`wakes`] — wake-ups of the shard's tasks: no allocation, no ownership, no failure.
//!
//! # The two sides
//!
//! | | any thread (producer) | the shard (owner) |
//! |---|---|---|
//! | 1 | publish: `Queue::push`, `Wakes::push`, or a ring's `publish` | `Handshake::take_pending` |
//! | 2 | `Handshake::announce` | if it was set: empty every inbound lane |
//! | 3 | on `Announce::Ring`: write the doorbell, once | run; when idle `Handshake::prepare_sleep` |
//! | 4 | | if it agreed: block in the kernel, then `Handshake::finish_sleep` |
//!
//! Each side first does its own part and then looks at the other's: a producer publishes and then
//! announces, the shard clears the news and then empties the lanes. Swapping the two steps on either
//! side loses wake-ups. The shard never blocks with news in the word, and news that comes while it
//! blocks is rung.
//!
//! Nothing here blocks, spins on another thread's progress or calls the kernel. That matters most
//! for wakers: two shards that wake each other's tasks must never wait for each other to drain.

pub(crate) mod handshake;
pub(crate) mod queue;
pub(crate) mod wakes;
