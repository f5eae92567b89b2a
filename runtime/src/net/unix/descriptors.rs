//! Descriptors that come with messages.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::net::datagram::{Datagram, check_fds, check_room, invalid};
use crate::ring::ops::pieces::Single;
use crate::ring::ops::receive_message::{Arrival, ReceiveMessage};
use crate::ring::ops::recv::StreamSocket;
use crate::ring::ops::send_datagram::SendDatagram;
use crate::ring::{Op, is_interrupted};

/// Descriptors came with a message, and not all of them could be received.
///
/// Part of an [`io::Error`] of the kind [`InvalidData`](io::ErrorKind::InvalidData). More were sent than the receiver
/// expected, or the process has no room for more open files. Those that did come were closed. The bytes of the message
/// are in the buffer.
///
/// # Examples
///
/// ```
/// use std::fs::File;
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::{DescriptorsLost, UnixDatagram};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let (one, other) = UnixDatagram::pair()?;
///     let fds = vec![File::open("/dev/null")?.into(), File::open("/dev/zero")?.into()];
///     one.send_with_fds("two files", fds).await.0?;
///     let (result, buffer) = other.recv_with_fds(Vec::with_capacity(16), 1).await;
///     let error = result.unwrap_err();
///     let lost = error.get_ref().unwrap().downcast_ref::<DescriptorsLost>().unwrap();
///     assert_eq!(&buffer[..lost.len()], b"two files");
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DescriptorsLost {
    len: usize,
    fds_max: usize,
}

impl DescriptorsLost {
    pub(in crate::net) fn error(len: usize, fds_max: usize) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, DescriptorsLost { len, fds_max })
    }

    /// How many bytes of the message are in the buffer.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "the length of what is in the buffer, not of a collection"
    )]
    pub fn len(&self) -> usize {
        self.len
    }
}

impl fmt::Display for DescriptorsLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a message came with more than the {} descriptors expected, or the process has too many open files; \
             those that came were closed",
            self.fds_max
        )
    }
}

impl Error for DescriptorsLost {}

/// Sends bytes on a stream, and descriptors with the first of them.
pub(super) async fn send_to_stream<B: IoBuf>(
    socket: &Rc<StreamSocket>,
    buffer: B,
    mut fds: Vec<OwnedFd>,
) -> BufResult<usize, (B, Vec<OwnedFd>)> {
    let mut buffer = Single(buffer);
    if buffer.0.is_empty() && !fds.is_empty() {
        let text = "descriptors travel with bytes: send at least one byte with them";
        return (Err(invalid(text.to_owned())), (buffer.0, fds));
    }
    if let Err(error) = check_fds(fds.len()) {
        return (Err(error), (buffer.0, fds));
    }
    if buffer.0.is_empty() {
        return (Ok(0), (buffer.0, fds));
    }
    loop {
        let lane = socket.take_outbound().await;
        let result;
        (result, buffer, fds) = Op::new(SendDatagram::new(lane, None, buffer, fds)).await;
        if !is_interrupted(&result) {
            return (result, (buffer.0, fds));
        }
    }
}

/// Receives bytes from a stream, and descriptors that came with the first of them.
pub(super) async fn receive_from_stream<B: IoBufMut>(
    socket: &Rc<StreamSocket>,
    buffer: B,
    fds_max: usize,
) -> BufResult<(usize, Vec<OwnedFd>), B> {
    let mut buffer = Single(buffer);
    if let Err(error) = check_room(buffer.0.capacity()) {
        return (Err(error), buffer.0);
    }
    let result = loop {
        let lane = socket.take_inbound().await;
        if let Some(kept) = lane.with_kept(|kept| kept.take_message(&mut buffer)) {
            break kept;
        }
        let result;
        (result, buffer) = Op::new(ReceiveMessage::new(lane, buffer, fds_max)).await;
        if !is_interrupted(&result) {
            break result;
        }
    };
    let result = result.and_then(|arrival| with_fds(arrival, fds_max));
    (result.map(|(bytes, fds)| (bytes.len, fds)), buffer.0)
}

/// Takes the descriptors out of a message, unless some were lost on the way.
pub(super) fn with_fds(arrival: Arrival, fds_max: usize) -> io::Result<(Datagram, Vec<OwnedFd>)> {
    let datagram = Datagram::from(&arrival);
    // A message that a cancelled receive took may have come with more than this one expects.
    if arrival.envelope.are_fds_lost || arrival.envelope.fds.len() > fds_max {
        return Err(DescriptorsLost::error(datagram.len, fds_max));
    }
    Ok((datagram, arrival.envelope.fds))
}
