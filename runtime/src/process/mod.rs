//! Child processes.
//!
//! A [`Command`] says what to run, as in the standard library. Making a process takes the kernel a millisecond now and
//! then, so the [blocking pool](crate::blocking) does it. What comes back is a [`Child`] that belongs to the shard: its
//! pipes are read and written through the shard's ring, and its end is awaited there, on a descriptor of the process.
//! No thread waits for a child.
//!
//! # Nothing is left of a child
//!
//! A process that has ended stays in the kernel's table until its parent has asked for its exit status. [`Child::wait`]
//! asks. A [`Child`] that is dropped before goes to the [`reaper`], which belongs to the process like the
//! [signals](crate::signal) it works with, and asks in its place, whatever becomes of shard and runtime.
//!
//! # What a child inherits
//!
//! The environment and working directory, unless the command says otherwise; standard input, output and error as the
//! command says. No other descriptor, no blocked signal, and no shard's pin to a CPU. What this process ignores, the child
//! ignores too, except `SIGPIPE`.

mod child;
mod command;
mod pipe;
pub(crate) mod reaper;

pub use child::Child;
pub use command::{Command, Stdio};
pub use pipe::{ChildStderr, ChildStdin, ChildStdout};
pub use std::process::{ExitStatus, Output};
