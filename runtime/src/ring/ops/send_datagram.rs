//! Sending one message.
#![expect(unsafe_code, reason = "hands out the address of its message")]

use std::io;
use std::os::fd::OwnedFd;

use socket2::SockAddr;

use super::message::Message;
use super::pieces::Gather;
use super::receive_message::Keeper;
use crate::ring::backend::EntryKind;
use crate::ring::op::{Flags, Operation, Outcome};
use crate::ring::socket::Outbound;
use crate::sys;

/// Sends one message: whole, unless the socket is a stream.
pub(crate) struct SendDatagram<K: Keeper, B> {
    lane: Outbound<K>,
    message: Box<Message>,
    buffers: B,
    fds: Vec<OwnedFd>,
}

impl<K: Keeper, B: Gather> SendDatagram<K, B> {
    /// # Panics
    ///
    /// If there are more than [`FDS_MAX`](super::message::FDS_MAX) descriptors.
    pub(crate) fn new(
        lane: Outbound<K>,
        target: Option<&SockAddr>,
        buffers: B,
        fds: Vec<OwnedFd>,
    ) -> SendDatagram<K, B> {
        let kept = lane.with_kept(|kept| kept.headers()?.sending.take());
        let mut message = kept.unwrap_or_else(Message::new);
        message.address_to(target, &fds);
        SendDatagram {
            lane,
            message,
            buffers,
            fds,
        }
    }

    /// Sends without waiting, instead of through the ring.
    pub(crate) fn at_once(mut self) -> (io::Result<usize>, B, Vec<OwnedFd>) {
        let fd = self.lane.fd();
        let message = self.message.gathered_from(&self.buffers);
        // SAFETY: as for the ring below; `self` is in place during the call.
        let result = unsafe { sys::send_message(fd, message) };
        self.complete(Ok(Outcome {
            result,
            flags: Flags::default(),
        }))
    }
}

// SAFETY: the header, the address, the list of pieces and the control memory lie in the boxed message, and the pieces
// in the buffers; `Gather` promises that those stay valid and unwritten while the payload is untouched.
unsafe impl<K: Keeper, B: Gather> Operation for SendDatagram<K, B> {
    type Output = (io::Result<usize>, B, Vec<OwnedFd>);

    const NAME: &'static str = "sendmsg";
    const CAN_HIDE: bool = true;

    fn entry(&mut self) -> EntryKind {
        EntryKind::SendMessage {
            fd: self.lane.fd(),
            message: self.message.gathered_from(&self.buffers),
        }
    }

    fn complete(self, outcome: io::Result<Outcome>) -> Self::Output {
        let result = outcome.and_then(Outcome::into_result);
        put_back(&self.lane, self.message);
        (result.map(|count| count as usize), self.buffers, self.fds)
    }

    /// What was sent was sent.
    fn orphan(self, _outcome: Outcome) {
        put_back(&self.lane, self.message);
    }
}

fn put_back<K: Keeper>(lane: &Outbound<K>, message: Box<Message>) {
    lane.with_kept(|kept| {
        if let Some(headers) = kept.headers() {
            headers.sending = Some(message);
        }
    });
}
