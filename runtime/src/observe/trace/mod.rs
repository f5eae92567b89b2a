//! What the runtime tells to `tracing`, with the feature of that name.
//!
//! * A span for each task, level debug, target `greenroom::task`, with its `id`, `name`, `location` and `shard`. It is made
//!   after the spawn, entered for each poll, and closed when the task ends, before its joiner is woken. It has no parent:
//!   a task is not a part of the one that spawned it, and chains of spawns would nest without bound. It follows from the
//!   task in whose poll it was spawned instead, if that is of the same shard.
//! * Events with the target `greenroom::shard`: shards start and stop (info), park and unpark (trace), are stalled (warn);
//!   the backend that was chosen (info).
//! * An event with the target `greenroom::panic`, level error, for each panic that is contained. One in a task's poll is
//!   inside of the task's span.
//!
//! A subscriber is anyone's code. It is called where hooks are, never while a structure of the shard is borrowed, so it may
//! spawn and wake. What it throws is contained.
//!
//! Both modules have the same functions. Without the feature they are empty, and so are the types.

#[cfg(not(feature = "tracing"))]
mod off;
#[cfg(feature = "tracing")]
mod on;

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{
    Current, TaskSpan, backend_chosen, panicked, parking, shard_started, shard_stopped, stalled,
    unparked,
};
#[cfg(feature = "tracing")]
pub(crate) use on::{
    Current, TaskSpan, backend_chosen, panicked, parking, shard_started, shard_stopped, stalled,
    unparked,
};
