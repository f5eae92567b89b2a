//! The primitives that tasks wait for each other with.
//!
//! What they do is tested by hand-polled futures, once for each kind of sharing; that they do it between shards, and in
//! tasks, by running them there.

#[macro_use]
mod support;

mod channels;
mod fanout;
mod models;
mod permits;
mod running;
