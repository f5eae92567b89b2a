//! Messages with borders, in and out: what UDP, Unix datagrams and packet sequences have in common.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use socket2::SockAddr;

use crate::buffer::BufResult;
use crate::ring::Op;
use crate::ring::ops::message::FDS_MAX;
use crate::ring::ops::pieces::{Gather, PIECES_MAX, Scatter, Single};
use crate::ring::ops::receive_message::{Arrival, MessageSocket, ReceiveMessage};
use crate::ring::ops::send_datagram::SendDatagram;

/// How much of a datagram was received.
///
/// A datagram is received whole or not at all: what does not fit into the buffer is gone.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::Builder;
/// use greenroom_runtime::net::UdpSocket;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let socket = UdpSocket::bind("127.0.0.1:0")?;
///     socket.send_to("too long", socket.local_addr()?).await.0?;
///     let (result, buffer) = socket.recv_from(Vec::with_capacity(3)).await;
///     let (datagram, _peer) = result?;
///     assert!(datagram.is_truncated());
///     assert_eq!((datagram.len, datagram.full_len), (3, 8));
///     assert_eq!(buffer, b"too");
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a datagram may have been truncated"]
pub struct Datagram {
    /// How many bytes are in the buffer.
    pub len: usize,
    /// How many bytes were sent.
    pub full_len: usize,
}

impl Datagram {
    /// Whether the buffer was too small, so that the end is lost.
    #[must_use]
    pub fn is_truncated(self) -> bool {
        self.len < self.full_len
    }
}

impl From<&Arrival> for Datagram {
    fn from(arrival: &Arrival) -> Datagram {
        Datagram {
            len: arrival.len,
            full_len: arrival.full_len,
        }
    }
}

/// Sends one message whole, to the peer of a connected socket without a `target`. The descriptors go along as copies.
pub(super) async fn send<B: Gather>(
    socket: &Rc<MessageSocket>,
    target: Option<&SockAddr>,
    mut buffers: B,
    mut fds: Vec<OwnedFd>,
) -> (io::Result<usize>, B, Vec<OwnedFd>) {
    if let Err(error) = check_pieces(buffers.piece_count()).and_then(|()| check_fds(fds.len())) {
        return (Err(error), buffers, fds);
    }
    loop {
        let lane = socket.take_outbound().await;
        let result;
        (result, buffers, fds) = Op::new(SendDatagram::new(lane, target, buffers, fds)).await;
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (Err(explain(error, buffers.total_len())), buffers, fds),
            Ok(count) => return (Ok(count), buffers, fds),
        }
    }
}

/// Receives one message, and at most so many descriptors with it.
pub(super) async fn receive<B: Scatter>(
    socket: &Rc<MessageSocket>,
    mut buffers: B,
    fds_max: usize,
) -> BufResult<Arrival, B> {
    if let Err(error) =
        check_pieces(buffers.piece_count()).and_then(|()| check_room(buffers.room()))
    {
        return (Err(error), buffers);
    }
    loop {
        let lane = socket.take_inbound().await;
        if let Some(kept) = lane.with_kept(|kept| kept.take(&mut buffers)) {
            return (kept, buffers);
        }
        let result;
        (result, buffers) = Op::new(ReceiveMessage::new(lane, buffers, fds_max)).await;
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return (result, buffers),
        }
    }
}

/// As [`receive`], of one buffer.
pub(super) async fn receive_single<B>(
    socket: &Rc<MessageSocket>,
    buffer: B,
    fds_max: usize,
) -> BufResult<Arrival, B>
where
    Single<B>: Scatter,
{
    let (result, Single(buffer)) = receive(socket, Single(buffer), fds_max).await;
    (result, buffer)
}

/// As [`send`], of one buffer and no descriptor.
pub(super) async fn send_single<B>(
    socket: &Rc<MessageSocket>,
    target: Option<&SockAddr>,
    buffer: B,
) -> BufResult<usize, B>
where
    Single<B>: Gather,
{
    let (result, Single(buffer), _) = send(socket, target, Single(buffer), Vec::new()).await;
    (result, buffer)
}

/// As [`send_single`], without waiting.
pub(super) fn try_send_single<B>(
    socket: &Rc<MessageSocket>,
    target: Option<&SockAddr>,
    buffer: B,
) -> BufResult<usize, B>
where
    Single<B>: Gather,
{
    // What is in flight was first.
    let Some(lane) = socket.try_take_outbound() else {
        return (Err(io::ErrorKind::WouldBlock.into()), buffer);
    };
    let operation = SendDatagram::new(lane, target, Single(buffer), Vec::new());
    let (result, buffer, _) = operation.at_once();
    let result = result.map_err(|error| explain(error, buffer.total_len()));
    (result, buffer.0)
}

/// As [`receive_single`], without waiting.
pub(super) fn try_receive_single<B>(
    socket: &Rc<MessageSocket>,
    buffer: B,
    fds_max: usize,
) -> BufResult<Arrival, B>
where
    Single<B>: Scatter,
{
    let mut buffer = Single(buffer);
    if let Err(error) = check_room(buffer.room()) {
        return (Err(error), buffer.0);
    }
    // What is in flight was first: the next message is its.
    let Some(lane) = socket.try_take_inbound() else {
        return (Err(io::ErrorKind::WouldBlock.into()), buffer.0);
    };
    if let Some(kept) = lane.with_kept(|kept| kept.take(&mut buffer)) {
        return (kept, buffer.0);
    }
    let (result, Single(buffer)) = ReceiveMessage::new(lane, buffer, fds_max).at_once();
    (result, buffer)
}

fn check_pieces(count: usize) -> io::Result<()> {
    if count <= PIECES_MAX {
        return Ok(());
    }
    Err(invalid(format!(
        "a message in {count} buffers: the kernel takes at most {PIECES_MAX}; join some of them"
    )))
}

pub(super) fn check_fds(count: usize) -> io::Result<()> {
    if count <= FDS_MAX {
        return Ok(());
    }
    Err(invalid(format!(
        "{count} descriptors in one message: the kernel takes at most {FDS_MAX}; send several messages"
    )))
}

/// A receive without room would take a message and throw it away.
pub(super) fn check_room(room: usize) -> io::Result<()> {
    if room > 0 {
        return Ok(());
    }
    Err(invalid(
        "a buffer without capacity takes no message; reserve some, with `Vec::with_capacity` for example".to_owned(),
    ))
}

/// Says what was too long, which the system leaves open.
fn explain(error: io::Error, len: usize) -> io::Error {
    if error.raw_os_error() != Some(libc::EMSGSIZE) {
        return error;
    }
    invalid(format!(
        "a message of {len} bytes is too long for the socket: UDP takes at most 65507, a Unix socket as much as its \
         send buffer"
    ))
}

pub(super) fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
