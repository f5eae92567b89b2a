//! What messages tell to `tracing`, with the feature of that name.
//!
//! * A span for each message that is handled, level debug, target `greenroom::message`, with the `actor`, its `id` and `name`s, the
//!   `method` and the `shard`. It is made when the handler begins, entered while the handler runs, and closed when it has
//!   ended. It has no parent: it *follows from* the span in which the message was sent. Messages that are handled in
//!   a batch have one span, which follows from those of all.
//! * Events about failures and restarts, see `life/root.rs`.
//!
//! # What a message carries
//! The [`Trail`] of a message is the id of a span, and no more: it keeps no span open, so however long a chain of messages gets, there
//! are never more spans than handlers that run. It lies in the message's `Reply`, which each message has, also one that was told.
//!
//! # Two looks at one message
//! Whether a handler is asynchronous is found by trying it as a synchronous one. So its span is made before that, and put off
//! if the message is given back; whoever goes on with the message, in the same poll, takes it from there. A message that
//! would be handled where it arrives, and might be given back to the queue, takes the queue at once while somebody listens.
//!
//! # Where a subscriber is called
//! A subscriber is anyone's code. It is called before a mailbox is looked at ([`Trail::here`]) and around handlers, never while a
//! structure is borrowed. What it throws is contained.
//!
//! Both modules have the same functions. Without the feature they are empty, and so are the types.

#[cfg(not(feature = "tracing"))]
mod off;
#[cfg(feature = "tracing")]
mod on;

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{Handling, Trail, is_on};
#[cfg(feature = "tracing")]
pub(crate) use on::{Handling, Trail, is_on};
