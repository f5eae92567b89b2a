//! Accepting connections, one after the other, until told to stop.
#![expect(
    unsafe_code,
    reason = "owns the descriptors it is given; holds no address"
)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::ring::backend::EntryKind;
use crate::ring::op::{Effects, Operation, Outcome, Pace, Progress};
use crate::ring::socket::{Inbound, Socket};

/// A listening socket, and what came in and was not asked for yet.
pub(crate) type ListenerSocket = Socket<Incoming>;

/// Connections taken from the kernel at most before they are asked for, give or take what is on its way when the kernel is
/// told to stop. More wait in the kernel's backlog.
pub(crate) const INCOMING_MAX: usize = 64;

/// What a listener brought in.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    connections: VecDeque<OwnedFd>,
    /// Why accepting ended, as an `errno`.
    failure: Option<i32>,
}

impl Incoming {
    /// Whether something can be had without asking the kernel.
    pub(crate) fn has_next(&self) -> bool {
        !self.connections.is_empty() || self.failure.is_some()
    }

    /// The oldest connection, or else the error that came after the last one. `None` if there is neither.
    pub(crate) fn next(&mut self) -> Option<io::Result<OwnedFd>> {
        if let Some(connection) = self.connections.pop_front() {
            return Some(Ok(connection));
        }
        let errno = self.failure.take()?;
        Some(Err(io::Error::from_raw_os_error(errno)))
    }
}

/// Takes connections from a listener.
pub(crate) struct AcceptMulti {
    lane: Inbound<Incoming>,
    /// [`Pace::Stop`] once enough connections wait.
    pace: Pace,
}

impl AcceptMulti {
    pub(crate) fn new(lane: Inbound<Incoming>) -> AcceptMulti {
        AcceptMulti {
            lane,
            pace: Pace::GoOn,
        }
    }

    fn accepted(&mut self, outcome: Outcome, _effects: &mut Effects) -> Pace {
        self.lane.with_kept(|incoming| match outcome.result {
            0.. => {
                // SAFETY: each successful completion has a new descriptor, which this takes once.
                let connection = unsafe { OwnedFd::from_raw_fd(outcome.result) };
                incoming.connections.push_back(connection);
                if incoming.connections.len() >= INCOMING_MAX {
                    self.pace = Pace::Stop;
                }
            }
            error if is_passing(-error) => {}
            error => incoming.failure = Some(-error),
        });
        self.pace
    }
}

/// Whether an error says nothing about the next accept: a cancel, a signal, or an error of the one connection, which Linux
/// reports here although nobody has that connection yet (`accept(2)`).
fn is_passing(errno: i32) -> bool {
    matches!(
        errno,
        libc::ECANCELED
            | libc::EINTR
            | libc::EAGAIN
            | libc::ECONNABORTED
            | libc::EPROTO
            | libc::ENETDOWN
            | libc::ENOPROTOOPT
            | libc::EHOSTDOWN
            | libc::ENONET
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
    )
}

// SAFETY: the entry holds no address.
unsafe impl Operation for AcceptMulti {
    /// An error if it was cancelled without having asked for that: the driver is closing.
    type Output = io::Result<()>;

    const NAME: &'static str = "accept";
    const PROGRESS: Option<Progress<Self>> = Some(Self::accepted);

    fn entry(&mut self) -> EntryKind {
        EntryKind::AcceptMulti { fd: self.lane.fd() }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        self.pace.end(outcome)
    }

    /// What it brought in is with the socket already, and closes with it.
    fn orphan(self, _outcome: Outcome) {}
}
