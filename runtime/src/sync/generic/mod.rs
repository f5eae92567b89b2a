//! The primitives themselves, generic in who may hold them.
//!
//! [`sync`](super) and [`sync::cross`](super::cross) name them for [`SameShard`](super::SameShard) and
//! [`AnyThread`](super::AnyThread); these are what to look at for what they do, and what to name in code that is itself
//! generic in it.

pub mod broadcast;
pub mod gate;
pub mod mpsc;
pub mod notify;
pub mod oneshot;
pub mod semaphore;
pub mod watch;
