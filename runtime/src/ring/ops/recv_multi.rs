//! Receiving from a socket again and again, into buffers of the shard.
#![expect(
    unsafe_code,
    reason = "implements the contract of operations; holds no address"
)]

use std::io;
use std::rc::Rc;

use crate::ring::backend::EntryKind;
use crate::ring::op::{Effects, Flags, Operation, Outcome, Pace, Progress};
use crate::ring::pool::BufferPool;
use crate::ring::pooled::PooledBuf;
use crate::ring::received::{End, Received};
use crate::ring::socket::Inbound;

/// Buffers one socket may hold before they are asked for, give or take what is on its way when the kernel is told to
/// stop: at most this many, and at most a sixteenth of the pool. More bytes wait in the socket, and hold up the peer.
const CHUNKS_MAX: usize = 32;

/// Receives until the stream ends.
pub(crate) struct RecvMulti {
    lane: Inbound<Received>,
    /// Keeps the memory while the kernel may write to it.
    pool: Rc<BufferPool>,
    /// [`Pace::Stop`] once enough bytes wait.
    pace: Pace,
}

impl RecvMulti {
    pub(crate) fn new(lane: Inbound<Received>, pool: Rc<BufferPool>) -> RecvMulti {
        RecvMulti {
            lane,
            pool,
            pace: Pace::GoOn,
        }
    }

    fn received(&mut self, outcome: Outcome, _effects: &mut Effects) -> Pace {
        let count = u32::try_from(outcome.result).unwrap_or(0);
        // Whatever the result is, a buffer that comes with it is ours to give back.
        let lent = outcome.flags.buffer();
        let lent = lent.map(|id| self.pool.lend(id, count as usize));
        let chunks_max = CHUNKS_MAX.min(self.pool.count() / 16).max(1);
        self.lane.with_kept(|received| {
            received.note_rest(outcome.flags.contains(Flags::SOCKET_NONEMPTY));
            match outcome.result {
                1.. => {
                    let lent = lent.expect("received bytes come with their buffer");
                    received.push(PooledBuf::from_pool(lent, count));
                    if received.chunk_count() >= chunks_max {
                        self.pace = Pace::Stop;
                    }
                }
                0 => received.end(End::Eof),
                error => match -error {
                    // Says nothing about the stream. Without a buffer the next receive does without the pool.
                    libc::ECANCELED | libc::EINTR | libc::EAGAIN | libc::ENOBUFS => {}
                    errno => received.end(End::Failed(errno)),
                },
            }
        });
        self.pace
    }
}

// SAFETY: the entry holds no address.
unsafe impl Operation for RecvMulti {
    /// An error if it was cancelled without having asked for that: the driver is closing.
    type Output = io::Result<()>;

    const NAME: &'static str = "recv";
    const PROGRESS: Option<Progress<Self>> = Some(Self::received);

    fn entry(&mut self) -> EntryKind {
        EntryKind::RecvMulti { fd: self.lane.fd() }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        self.pace.end(outcome)
    }

    /// What it received is with the socket already: it comes first in the next read, or goes with the socket.
    fn orphan(self, _outcome: Outcome) {}
}
