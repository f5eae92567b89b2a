//! Cycles of actors that wait for each other: found by those who have waited long, at no cost for those who have not.
//!
//! The protocol, and why it never finds a cycle that is none, is told in the book: `internals/cycles.md`. In short: an actor
//! whose handler has waited for the same answer, or the same room, for 64 ms is looked at ([`Suspects`]). Its handler is
//! polled once more with a waker that counts who keeps it ([`inquire`]); if that is nobody but the one wait, a
//! [`Probe`] goes to the actor that is waited for, which does the same, and so on. A probe that comes home has found a
//! cycle.

mod inquiry;
mod probe;
mod suspects;

pub(crate) use self::inquiry::inquire;
pub(crate) use self::probe::{Edge, Forward, Probe, Verdict, Wait};
pub(crate) use self::suspects::Suspects;
