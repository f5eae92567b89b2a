//! Why a runtime did not start.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::builder::GATHER_MAX;
use crate::ring::{BackendError, VARIABLE};
use crate::shard::ShardId;

/// A runtime that did not start. No thread of it is left.
pub struct StartError {
    pub(crate) shard: Option<ShardId>,
    pub(crate) kind: StartErrorKind,
}

pub(crate) enum StartErrorKind {
    NoShards,
    TooManyShards {
        asked: usize,
    },
    /// It has a zero in it.
    ThreadName {
        asked: String,
    },
    StackBytes {
        asked: usize,
    },
    LinkBytes {
        asked: usize,
    },
    Gather {
        asked: Duration,
    },
    NoBlockingThreads,
    RecvBuffers {
        count: usize,
        bytes: usize,
    },
    Thread(io::Error),
    Watchdog(io::Error),
    Pin {
        cpu: usize,
        source: io::Error,
    },
    Doorbell(io::Error),
    Backend(BackendError),
    /// What the environment asked for.
    BackendVariable {
        value: OsString,
    },
    /// The text: a payload need not be `Sync`, and errors should be.
    Panicked(String),
}

impl StartError {
    pub(crate) fn new(kind: StartErrorKind) -> Self {
        Self { shard: None, kind }
    }

    /// Whether the kernel, or a sandbox around this process, refused the I/O backend.
    #[must_use]
    pub fn is_backend(&self) -> bool {
        matches!(self.kind, StartErrorKind::Backend(_))
    }

    /// What the kernel refused, if it did.
    #[must_use]
    pub fn backend(&self) -> Option<&BackendError> {
        match &self.kind {
            StartErrorKind::Backend(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the start hook of a shard panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self.kind, StartErrorKind::Panicked(_))
    }

    /// Whether the builder, or the environment, gave a value out of range.
    #[must_use]
    pub fn is_config(&self) -> bool {
        matches!(
            self.kind,
            StartErrorKind::NoShards
                | StartErrorKind::TooManyShards { .. }
                | StartErrorKind::ThreadName { .. }
                | StartErrorKind::StackBytes { .. }
                | StartErrorKind::LinkBytes { .. }
                | StartErrorKind::Gather { .. }
                | StartErrorKind::NoBlockingThreads
                | StartErrorKind::RecvBuffers { .. }
                | StartErrorKind::BackendVariable { .. }
        )
    }

    /// The shard that failed, if it was one shard.
    #[must_use]
    pub fn shard(&self) -> Option<ShardId> {
        self.shard
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(shard) = self.shard {
            write!(f, "{shard} did not start: ")?;
        }
        match &self.kind {
            StartErrorKind::NoShards => {
                f.write_str("a runtime needs at least one shard; 0 were asked for")
            }
            StartErrorKind::TooManyShards { asked } => {
                write!(
                    f,
                    "{asked} shards were asked for, but a process can have 1024 at a time; ask for fewer"
                )
            }
            StartErrorKind::ThreadName { asked } => out_of_range::thread_name(f, asked),
            StartErrorKind::StackBytes { asked } => out_of_range::stack_bytes(f, *asked),
            StartErrorKind::LinkBytes { asked } => {
                write!(
                    f,
                    "a link of {asked} bytes was asked for; it must be a power of two from 4096 to 1073741824"
                )
            }
            StartErrorKind::Gather { asked } => {
                write!(
                    f,
                    "completions were to gather for {asked:?}; at most {GATHER_MAX:?} is allowed, and 0 switches it off"
                )
            }
            StartErrorKind::NoBlockingThreads => f.write_str(
                "a blocking pool of 0 threads was asked for; `blocking_threads` must be at least 1",
            ),
            StartErrorKind::RecvBuffers { count, bytes } => {
                write!(
                    f,
                    "{count} receive buffers of {bytes} bytes were asked for; \
                     their number must be a power of two from 1 to 32768, their size from 64 to 1048576 bytes"
                )
            }
            StartErrorKind::Thread(_) => f.write_str(
                "its thread could not be made; raise the limit on processes (ulimit -u)",
            ),
            StartErrorKind::Watchdog(_) => f.write_str(
                "the watchdog's thread could not be made; raise the limit on processes (ulimit -u)",
            ),
            StartErrorKind::Pin { cpu, .. } => {
                write!(
                    f,
                    "its thread could not be pinned to CPU {cpu}; call `pin(false)` on the builder to run unpinned"
                )
            }
            StartErrorKind::Doorbell(_) => f.write_str(
                "its eventfd could not be made; raise the limit on open files (ulimit -n)",
            ),
            StartErrorKind::Backend(error) if error.is_about_io_uring() => {
                write!(
                    f,
                    "{error}; or run on epoll, with Backend::Auto or {VARIABLE}=epoll"
                )
            }
            StartErrorKind::Backend(error) => write!(f, "{error}"),
            StartErrorKind::BackendVariable { value } => {
                write!(
                    f,
                    "the environment variable {VARIABLE} is {value:?}; it may be \"io_uring\", \"epoll\" or \"auto\""
                )
            }
            StartErrorKind::Panicked(text) => write!(f, "it panicked: {text}"),
        }
    }
}

/// What is said of values that a builder does not take.
mod out_of_range {
    use std::fmt;

    use crate::builder::STACK_BYTES;

    pub(super) fn thread_name(f: &mut fmt::Formatter<'_>, asked: &str) -> fmt::Result {
        write!(
            f,
            "threads cannot be called {asked:?}: a name has no zero in it"
        )
    }

    pub(super) fn stack_bytes(f: &mut fmt::Formatter<'_>, asked: usize) -> fmt::Result {
        let (least, most) = (STACK_BYTES.start(), STACK_BYTES.end());
        write!(
            f,
            "a stack of {asked} bytes was asked for; it must be from {least} to {most}"
        )
    }
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A program whose `main` returns this error shows its `Debug` form: the text is what its user needs.
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            StartErrorKind::Thread(error)
            | StartErrorKind::Watchdog(error)
            | StartErrorKind::Doorbell(error) => Some(error),
            StartErrorKind::Pin { source, .. } => Some(source),
            StartErrorKind::Backend(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}
