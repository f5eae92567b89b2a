//! What the framework promises, tested through its public face: one module a promise.

mod bound;
mod fair;
mod moved;
mod order;
mod replies;
mod stop;
