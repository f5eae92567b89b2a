//! Receiving one message.
#![expect(
    unsafe_code,
    reason = "hands out the address of its message, and reads back what the kernel wrote there"
)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use socket2::SockAddr;

use super::message::Message;
use super::pieces::Scatter;
use crate::ring::backend::EntryKind;
use crate::ring::buffer::BufResult;
use crate::ring::op::{Flags, Operation, Outcome};
use crate::ring::socket::{Inbound, Kept, Socket};
use crate::sys;

/// A socket that keeps the borders of messages: datagrams, or a sequence of packets.
pub(crate) type MessageSocket = Socket<KeptMessages>;

/// What the operations of a message socket leave for the next ones.
#[derive(Debug, Default)]
pub(crate) struct KeptMessages {
    /// What cancelled receives brought home: messages, and errors that the kernel reports once.
    letters: VecDeque<io::Result<Letter>>,
    headers: Headers,
}

/// The headers of the last messages in each direction.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    receiving: Option<Box<Message>>,
    pub(super) sending: Option<Box<Message>>,
}

/// What a socket keeps for its operations on messages.
pub(crate) trait Keeper: 'static {
    /// The flags of a receive. Descriptors are never inherited by child processes.
    const FLAGS: i32;

    /// Where headers are kept, if they are.
    fn headers(&mut self) -> Option<&mut Headers>;

    /// Keeps what a cancelled receive brought home.
    fn keep(&mut self, letter: io::Result<Letter>);
}

/// A message without buffers of its receiver.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) bytes: Vec<u8>,
    full_len: usize,
    pub(crate) envelope: Envelope,
}

/// What comes with the bytes of a message.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) peer: SockAddr,
    pub(crate) fds: Vec<OwnedFd>,
    /// Whether there was no room for all the descriptors that were sent; then `fds` is empty.
    pub(crate) are_fds_lost: bool,
}

impl Envelope {
    /// Of bytes that nothing came along with.
    pub(crate) fn empty() -> Envelope {
        Envelope {
            peer: Message::nobody(),
            fds: Vec::new(),
            are_fds_lost: false,
        }
    }
}

/// A message that was received.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// How many bytes are in the buffers.
    pub(crate) len: usize,
    /// How many bytes were sent.
    pub(crate) full_len: usize,
    pub(crate) envelope: Envelope,
}

impl Kept for KeptMessages {
    fn holds_something(&self) -> bool {
        !self.letters.is_empty()
    }
}

impl KeptMessages {
    /// Moves the oldest message that a cancelled receive took into the buffers. `None` if there is none.
    pub(crate) fn take(&mut self, buffers: &mut impl Scatter) -> Option<io::Result<Arrival>> {
        let letter = self.letters.pop_front()?;
        Some(letter.map(|letter| Arrival {
            len: buffers.copy_in(&letter.bytes),
            full_len: letter.full_len,
            envelope: letter.envelope,
        }))
    }
}

impl Keeper for KeptMessages {
    /// The result is the length that was sent.
    const FLAGS: i32 = libc::MSG_TRUNC | libc::MSG_CMSG_CLOEXEC;

    fn headers(&mut self) -> Option<&mut Headers> {
        Some(&mut self.headers)
    }

    fn keep(&mut self, letter: io::Result<Letter>) {
        self.letters.push_back(letter);
    }
}

/// Receives one message into buffers.
pub(crate) struct ReceiveMessage<K, B> {
    lane: Inbound<K>,
    message: Box<Message>,
    buffers: B,
}

impl<K: Keeper, B: Scatter> ReceiveMessage<K, B> {
    pub(crate) fn new(lane: Inbound<K>, buffers: B, fds_max: usize) -> ReceiveMessage<K, B> {
        let kept = lane.with_kept(|kept| kept.headers()?.receiving.take());
        let mut message = kept.unwrap_or_else(Message::new);
        message.expect_fds(fds_max);
        ReceiveMessage {
            lane,
            message,
            buffers,
        }
    }

    /// Receives without waiting, instead of through the ring.
    pub(crate) fn at_once(mut self) -> BufResult<Arrival, B> {
        let fd = self.lane.fd();
        let message = self.message.scattered_to(&mut self.buffers);
        // SAFETY: as for the ring below; `self` is in place during the call.
        let result = unsafe { sys::receive_message(fd, message, K::FLAGS) };
        self.complete(Ok(Outcome {
            result,
            flags: Flags::default(),
        }))
    }

    /// Notes what was received.
    fn received(&mut self, outcome: Outcome) -> io::Result<Arrival> {
        let full_len = outcome.into_result()? as usize;
        let len = full_len.min(self.buffers.room());
        // SAFETY: the kernel was told the capacity and filled the buffers from their start.
        unsafe { self.buffers.set_filled(len) };
        // SAFETY: the kernel received a message by this header; an operation either completes or is orphaned.
        let (mut fds, are_fds_lost) = unsafe { self.message.take_fds() };
        if are_fds_lost {
            // Some of a set of descriptors are of no use to anybody.
            fds.clear();
        }
        // SAFETY: the kernel received a message by this header.
        let peer = unsafe { self.message.peer() };
        Ok(Arrival {
            len,
            full_len,
            envelope: Envelope {
                peer,
                fds,
                are_fds_lost,
            },
        })
    }
}

// SAFETY: the header and the list of pieces lie in the boxed message, and the pieces in the buffers; `Scatter`
// promises that those stay valid and exclusive while the payload is untouched.
unsafe impl<K: Keeper, B: Scatter> Operation for ReceiveMessage<K, B> {
    type Output = BufResult<Arrival, B>;

    const NAME: &'static str = "recvmsg";

    fn entry(&mut self) -> EntryKind {
        EntryKind::ReceiveMessage {
            fd: self.lane.fd(),
            message: self.message.scattered_to(&mut self.buffers),
            flags: K::FLAGS,
        }
    }

    fn complete(mut self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(|outcome| self.received(outcome));
        put_back(&self.lane, self.message);
        (result, self.buffers)
    }

    /// Keeps the message for the next receive, with its address and descriptors, and an error that would not be
    /// reported again.
    fn orphan(mut self, outcome: Outcome) {
        let letter = match self.received(outcome) {
            Ok(arrival) => Ok(Letter {
                bytes: self.buffers.copy_out(arrival.len),
                full_len: arrival.full_len,
                envelope: arrival.envelope,
            }),
            Err(error) => match error.raw_os_error() {
                Some(libc::ECANCELED | libc::EINTR | libc::EAGAIN) => return,
                _ => Err(error),
            },
        };
        self.lane.with_kept(|kept| kept.keep(letter));
        put_back(&self.lane, self.message);
    }
}

fn put_back<K: Keeper>(lane: &Inbound<K>, message: Box<Message>) {
    lane.with_kept(|kept| {
        if let Some(headers) = kept.headers() {
            headers.receiving = Some(message);
        }
    });
}
