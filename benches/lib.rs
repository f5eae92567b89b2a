//! Benchmarks of greenroom, one binary for each question:
//!
//! * `messages`: what a message costs, in time and allocations, and the heap of an idle actor.
//! * `float`: what work that may move between shards is worth, and that it costs nothing when nothing moves.
//! * `compile`: what `#[actor]` costs the compiler, and how much code it makes.
//! * `soak`: what random work leaves behind, which must be nothing.
//! * `savina`: what greenroom makes of a suite of small concurrent programs, and how they are written with it.
//! * `scaling`: how costs grow with actors, with mailboxes, and with shards.
