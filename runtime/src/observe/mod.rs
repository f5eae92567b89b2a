//! Seeing inside: what a running system tells about itself, and to whom.
//!
//! * [`hooks`]: functions of the user's, called at certain moments.

pub(crate) mod hooks;
