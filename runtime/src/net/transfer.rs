//! Moving bytes in and out of a stream: what the whole stream and its halves have in common.

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use super::receiver::Receiver;
use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::ring::backend::Extent;
use crate::ring::ops::poll::{PollRoom, PollWritable};
use crate::ring::ops::recv::StreamSocket;
use crate::ring::ops::send::Send;
use crate::ring::ops::send_message::SendMessage;
use crate::ring::{Op, is_interrupted};
use crate::sys;

pub(super) async fn read_exact<B: IoBufMut>(
    receiver: &mut Receiver,
    socket: &Rc<StreamSocket>,
    mut buffer: B,
) -> BufResult<(), B> {
    let end = buffer.capacity();
    let mut filled = 0;
    while filled < end {
        let part = buffer.slice(filled..end);
        let (result, part) = receiver.read(socket, part).await;
        buffer = part.into_inner();
        match result {
            Ok(0) => return (Err(ended_early(filled, end)), buffer),
            Ok(count) => filled += count,
            Err(error) => return (Err(error), buffer),
        }
    }
    (Ok(()), buffer)
}

/// Sends without waiting.
pub(super) fn try_write(socket: &Rc<StreamSocket>, bytes: &[u8]) -> io::Result<usize> {
    // Nothing may be in flight, not even cancelled: it was written before.
    let lane = socket
        .try_take_outbound()
        .ok_or(io::ErrorKind::WouldBlock)?;
    sys::send_now(lane.as_fd(), bytes)
}

/// Waits until a [`try_write`] would not refuse.
pub(super) async fn writable(socket: &Rc<StreamSocket>) -> io::Result<()> {
    let lane = socket.take_outbound().await;
    match Op::new(PollWritable::new(lane)).await? {
        None => Ok(()),
        Some(lane) => Op::new(PollRoom::new(lane)?).await,
    }
}

pub(super) async fn write<B: IoBuf>(socket: &Rc<StreamSocket>, buffer: B) -> BufResult<usize, B> {
    send(socket, buffer, Extent::Some).await
}

/// Sends once.
pub(super) async fn send<B: IoBuf>(
    socket: &Rc<StreamSocket>,
    mut buffer: B,
    extent: Extent,
) -> BufResult<usize, B> {
    if buffer.is_empty() {
        return (Ok(0), buffer);
    }
    loop {
        let lane = socket.take_outbound().await;
        let (result, returned) = Op::new(Send::new(lane, buffer, extent)).await;
        if !is_interrupted(&result) {
            return (result, returned);
        }
        buffer = returned;
    }
}

pub(super) async fn write_all<B: IoBuf>(
    socket: &Rc<StreamSocket>,
    mut buffer: B,
) -> BufResult<(), B> {
    let mut sent = 0;
    while sent < buffer.len() {
        let (result, part) = send(socket, buffer.slice(sent..), Extent::All).await;
        buffer = part.into_inner();
        match result {
            Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), buffer),
            Ok(count) => sent += count,
            Err(error) => return (Err(error), buffer),
        }
    }
    (Ok(()), buffer)
}

/// Sends once, leaving out the first `skip` bytes.
async fn write_pieces<B: IoBuf>(
    socket: &Rc<StreamSocket>,
    mut buffers: Vec<B>,
    skip: usize,
) -> BufResult<usize, Vec<B>> {
    loop {
        let lane = socket.take_outbound().await;
        let (result, returned) = Op::new(SendMessage::new(lane, buffers, skip)).await;
        if !is_interrupted(&result) {
            return (result, returned);
        }
        buffers = returned;
    }
}

pub(super) async fn write_vectored<B: IoBuf>(
    socket: &Rc<StreamSocket>,
    buffers: Vec<B>,
) -> BufResult<usize, Vec<B>> {
    if buffers.iter().all(IoBuf::is_empty) {
        return (Ok(0), buffers);
    }
    write_pieces(socket, buffers, 0).await
}

pub(super) async fn write_all_vectored<B: IoBuf>(
    socket: &Rc<StreamSocket>,
    mut buffers: Vec<B>,
) -> BufResult<(), Vec<B>> {
    let total: usize = buffers.iter().map(IoBuf::len).sum();
    let mut sent = 0;
    while sent < total {
        let (result, returned) = write_pieces(socket, buffers, sent).await;
        buffers = returned;
        match result {
            Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), buffers),
            Ok(count) => sent += count,
            Err(error) => return (Err(error), buffers),
        }
    }
    (Ok(()), buffers)
}

fn ended_early(filled: usize, wanted: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("the peer ended the stream after {filled} of {wanted} bytes"),
    )
}
