//! Actors.
