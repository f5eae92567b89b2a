//! What the framework promises, tested through its public face: one module a promise.

mod account;
mod at_once;
mod bound;
mod bulk;
mod crowd;
mod errands;
mod exclusive;
mod fair;
mod isolation;
mod keyed;
mod large;
mod moved;
mod names;
mod order;
mod placement;
mod progress;
mod replies;
mod scatter;
mod stop;
mod storm;
mod timers;
mod types;
mod unwinding;
