//! Whether io_uring can be used here, and what to change if it cannot.
//!
//! Nothing is concluded from a version number: containers, sandboxes and distributions switch parts off. The ring is
//! set up, asked which operations it knows, and made to run one.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::time::Duration;

use io_uring::{Parameters, Probe, Submitter, opcode};

use super::backend::{Backend, Entry, EntryKind, Wait};

/// How long the first no-op may take. It takes microseconds.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(100);
/// A token no operation has: it reads as a cancel of a slot that cannot exist.
const ROUND_TRIP_TOKEN: u64 = u64::MAX;

/// The operations everything relies on.
const OPERATIONS: [(&str, u8); 24] = [
    ("NOP", opcode::Nop::CODE),
    ("ACCEPT", opcode::Accept::CODE),
    ("CONNECT", opcode::Connect::CODE),
    ("RECV", opcode::Recv::CODE),
    ("SEND", opcode::Send::CODE),
    ("SENDMSG", opcode::SendMsg::CODE),
    ("RECVMSG", opcode::RecvMsg::CODE),
    ("SHUTDOWN", opcode::Shutdown::CODE),
    ("READ", opcode::Read::CODE),
    ("POLL_ADD", opcode::PollAdd::CODE),
    ("ASYNC_CANCEL", opcode::AsyncCancel::CODE),
    ("OPENAT", opcode::OpenAt::CODE),
    ("CLOSE", opcode::Close::CODE),
    ("WRITE", opcode::Write::CODE),
    ("READV", opcode::Readv::CODE),
    ("WRITEV", opcode::Writev::CODE),
    ("FSYNC", opcode::Fsync::CODE),
    ("FALLOCATE", opcode::Fallocate::CODE),
    ("STATX", opcode::Statx::CODE),
    ("RENAMEAT", opcode::RenameAt::CODE),
    ("LINKAT", opcode::LinkAt::CODE),
    ("SYMLINKAT", opcode::SymlinkAt::CODE),
    ("UNLINKAT", opcode::UnlinkAt::CODE),
    ("MKDIRAT", opcode::MkDirAt::CODE),
];

/// Why no I/O backend could be set up.
///
/// The text names the cause and what to change about it.
#[derive(Debug)]
pub struct BackendError {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Refused {
        sysctl: Option<u8>,
        source: io::Error,
    },
    NotImplemented {
        source: io::Error,
    },
    OutOfMemory {
        locked_limit: Option<String>,
        source: io::Error,
    },
    OutOfDescriptors {
        source: io::Error,
    },
    Setup {
        source: io::Error,
    },
    Epoll {
        source: io::Error,
    },
    MissingFeature {
        name: &'static str,
    },
    MissingOperation {
        name: &'static str,
    },
    ProbeFailed {
        source: io::Error,
    },
    RoundTrip {
        found: Option<i32>,
        source: Option<io::Error>,
    },
}

impl BackendError {
    /// Whether the system forbids io_uring to this process.
    pub fn is_permission_denied(&self) -> bool {
        matches!(self.kind, Kind::Refused { .. })
    }

    /// Whether the kernel has no io_uring, or one that lacks what is needed.
    pub fn is_unsupported(&self) -> bool {
        match self.kind {
            Kind::NotImplemented { .. }
            | Kind::MissingFeature { .. }
            | Kind::MissingOperation { .. } => true,
            Kind::ProbeFailed { .. } | Kind::RoundTrip { .. } => true,
            Kind::Refused { .. } | Kind::Setup { .. } | Kind::Epoll { .. } => false,
            Kind::OutOfMemory { .. } | Kind::OutOfDescriptors { .. } => false,
        }
    }

    /// Whether a limit was reached: locked memory, or open files.
    pub fn is_limit(&self) -> bool {
        matches!(
            self.kind,
            Kind::OutOfMemory { .. } | Kind::OutOfDescriptors { .. }
        )
    }

    /// Whether another backend may work where this one did not.
    pub(crate) fn is_about_io_uring(&self) -> bool {
        !matches!(
            self.kind,
            Kind::OutOfDescriptors { .. } | Kind::Epoll { .. }
        )
    }

    /// Explains why there is no epoll either.
    pub(super) fn epoll(source: io::Error) -> BackendError {
        let kind = match source.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => Kind::OutOfDescriptors { source },
            _ => Kind::Epoll { source },
        };
        BackendError { kind }
    }

    /// Explains why `io_uring_setup` failed.
    pub(super) fn setup(source: io::Error) -> BackendError {
        let kind = match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Kind::Refused {
                sysctl: disabled_sysctl(),
                source,
            },
            Some(libc::ENOSYS) => Kind::NotImplemented { source },
            Some(libc::ENOMEM) => Kind::OutOfMemory {
                locked_limit: locked_limit(),
                source,
            },
            Some(libc::EMFILE | libc::ENFILE) => Kind::OutOfDescriptors { source },
            _ => Kind::Setup { source },
        };
        BackendError { kind }
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Refused { sysctl: Some(setting @ 1..), .. } => {
                write!(f, "io_uring_setup was refused (EPERM): kernel.io_uring_disabled is {setting}; ")?;
                f.write_str("set it to 0 with `sysctl kernel.io_uring_disabled=0`")?;
                if *setting == 1 {
                    f.write_str(", or run as a member of the group in kernel.io_uring_group")?;
                }
                f.write_str(", and allow io_uring in the container's seccomp profile")
            }
            Kind::Refused { .. } => f.write_str(
                "io_uring_setup was refused (EPERM): a seccomp profile or security module forbids it; \
                 allow io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp profile",
            ),
            Kind::NotImplemented { .. } => f.write_str(
                "io_uring_setup is not implemented (ENOSYS): the kernel or sandbox has no io_uring; \
                 run on Linux 5.19 or newer with CONFIG_IO_URING",
            ),
            Kind::OutOfMemory { locked_limit, .. } => {
                f.write_str("io_uring_setup found no memory (ENOMEM) even for the smallest ring: ")?;
                match locked_limit {
                    Some(limit) => write!(f, "RLIMIT_MEMLOCK is {limit} bytes; ")?,
                    None => f.write_str("RLIMIT_MEMLOCK may be too low; ")?,
                }
                f.write_str("raise it with `ulimit -l unlimited` or LimitMEMLOCK=infinity, or start fewer shards")
            }
            Kind::OutOfDescriptors { .. } => f.write_str(
                "the I/O backend found no free file descriptor: raise the limit with `ulimit -n`, or close some",
            ),
            Kind::Setup { .. } => f.write_str("io_uring_setup failed"),
            Kind::Epoll { .. } => f.write_str("epoll_create1 failed"),
            Kind::MissingFeature { name } => {
                write!(f, "this kernel's io_uring lacks the feature {name}: run on Linux 5.19 or newer")
            }
            Kind::MissingOperation { name } => {
                write!(f, "this kernel's io_uring lacks the operation {name}: run on Linux 5.19 or newer")
            }
            Kind::ProbeFailed { .. } => {
                f.write_str("io_uring does not tell which operations it has: run on Linux 5.19 or newer")
            }
            Kind::RoundTrip { found: Some(result), .. } => {
                write!(f, "io_uring is set up but a no-op through it gave {result} instead of 0")
            }
            Kind::RoundTrip { found: None, .. } => write!(
                f,
                "io_uring is set up but a no-op through it did not complete within {} ms",
                ROUND_TRIP_MAX.as_millis()
            ),
        }
    }
}

impl Error for BackendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::Refused { source, .. }
            | Kind::NotImplemented { source }
            | Kind::OutOfMemory { source, .. }
            | Kind::OutOfDescriptors { source }
            | Kind::Setup { source }
            | Kind::Epoll { source }
            | Kind::ProbeFailed { source } => Some(source),
            Kind::RoundTrip { source, .. } => source.as_ref().map(|source| source as _),
            Kind::MissingFeature { .. } | Kind::MissingOperation { .. } => None,
        }
    }
}

/// Requires what cannot be worked around.
pub(super) fn check_features(params: &Parameters) -> Result<(), BackendError> {
    let required = [
        ("NODROP", params.is_feature_nodrop()),
        ("FAST_POLL", params.is_feature_fast_poll()),
        ("EXT_ARG", params.is_feature_ext_arg()),
    ];
    for (name, is_present) in required {
        if !is_present {
            return Err(BackendError {
                kind: Kind::MissingFeature { name },
            });
        }
    }
    Ok(())
}

/// Requires every operation that everything relies on. Returns the list, which also tells of the others.
pub(super) fn check_operations(submitter: &Submitter<'_>) -> Result<Probe, BackendError> {
    let mut probe = Probe::new();
    submitter
        .register_probe(&mut probe)
        .map_err(|source| BackendError {
            kind: Kind::ProbeFailed { source },
        })?;
    for (name, code) in OPERATIONS {
        if !probe.is_supported(code) {
            return Err(BackendError {
                kind: Kind::MissingOperation { name },
            });
        }
    }
    Ok(probe)
}

/// Sends a no-op through a fresh backend and waits for it.
pub(super) fn round_trip(backend: &mut impl Backend) -> Result<(), BackendError> {
    let is_queued = backend.push(&Entry {
        kind: EntryKind::Nop,
        token: ROUND_TRIP_TOKEN,
    });
    assert!(is_queued, "a fresh queue has room for one entry");
    let entered = backend.enter(Wait::Until(Some(ROUND_TRIP_MAX)));
    let mut found = None;
    backend.reap(|completion| found = Some(completion.result));
    match (entered, found) {
        (Ok(()), Some(0)) => Ok(()),
        (entered, found) => Err(BackendError {
            kind: Kind::RoundTrip {
                found,
                source: entered.err(),
            },
        }),
    }
}

/// The value of `kernel.io_uring_disabled`; `None` on kernels before 6.6, which do not have it.
fn disabled_sysctl() -> Option<u8> {
    fs::read_to_string("/proc/sys/kernel/io_uring_disabled")
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// The soft limit for locked memory, as the kernel prints it.
fn locked_limit() -> Option<String> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup_error(errno: i32) -> BackendError {
        BackendError::setup(io::Error::from_raw_os_error(errno))
    }

    fn refused(sysctl: Option<u8>) -> String {
        let source = io::Error::from_raw_os_error(libc::EPERM);
        BackendError {
            kind: Kind::Refused { sysctl, source },
        }
        .to_string()
    }

    #[test]
    fn a_refusal_names_the_switch_that_is_off() {
        assert!(refused(Some(2)).contains("kernel.io_uring_disabled is 2; set it to 0"));
        assert!(refused(Some(1)).contains("kernel.io_uring_group"));
        for other in [Some(0), None] {
            let text = refused(other);
            assert!(
                text.contains("seccomp") && !text.contains("sysctl"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_limit_is_named_with_its_value() {
        let error = setup_error(libc::ENOMEM);
        assert!(error.is_limit() && !error.is_permission_denied());
        let limit = locked_limit().unwrap();
        let text = error.to_string();
        assert!(
            text.contains(&format!("RLIMIT_MEMLOCK is {limit} bytes")),
            "{text}"
        );
        assert!(text.contains("ulimit -l"), "{text}");
        assert!(setup_error(libc::EMFILE).to_string().contains("ulimit -n"));
    }

    #[test]
    fn causes_are_told_apart() {
        assert!(setup_error(libc::EPERM).is_permission_denied());
        assert!(setup_error(libc::ENOSYS).is_unsupported());
        let error = setup_error(libc::EIO);
        assert!(!error.is_permission_denied() && !error.is_unsupported() && !error.is_limit());
        assert_eq!(
            error.source().unwrap().to_string(),
            io::Error::from_raw_os_error(libc::EIO).to_string()
        );
    }
}
