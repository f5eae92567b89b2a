//! Moving bytes in and out of a stream: what the whole stream and its halves have in common.

use std::io;
use std::rc::Rc;

use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::ring::Op;
use crate::ring::ops::recv::{Recv, StreamSocket};
use crate::ring::ops::send::Send;
use crate::ring::ops::send_message::SendMessage;

pub(super) async fn read<B: IoBufMut>(
    socket: &Rc<StreamSocket>,
    mut buffer: B,
) -> BufResult<usize, B> {
    if buffer.capacity() == 0 {
        return (Ok(0), buffer);
    }
    loop {
        let lane = socket.take_inbound().await;
        if let Some(count) = lane.with_kept(|kept| kept.take(&mut buffer)) {
            return (Ok(count), buffer);
        }
        let (result, returned) = Op::new(Recv::new(lane, buffer)).await;
        if !is_interrupted(&result) {
            return (result, returned);
        }
        buffer = returned;
    }
}

pub(super) async fn read_exact<B: IoBufMut>(
    socket: &Rc<StreamSocket>,
    mut buffer: B,
) -> BufResult<(), B> {
    let end = buffer.capacity();
    let mut filled = 0;
    while filled < end {
        let (result, part) = read(socket, buffer.slice(filled..end)).await;
        buffer = part.into_inner();
        match result {
            Ok(0) => return (Err(ended_early(filled, end)), buffer),
            Ok(count) => filled += count,
            Err(error) => return (Err(error), buffer),
        }
    }
    (Ok(()), buffer)
}

pub(super) async fn write<B: IoBuf>(
    socket: &Rc<StreamSocket>,
    mut buffer: B,
) -> BufResult<usize, B> {
    if buffer.is_empty() {
        return (Ok(0), buffer);
    }
    loop {
        let lane = socket.take_outbound().await;
        let (result, returned) = Op::new(Send::some(lane, buffer)).await;
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
        let lane = socket.take_outbound().await;
        let (result, part) = Op::new(Send::all(lane, buffer.slice(sent..))).await;
        buffer = part.into_inner();
        match result {
            Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), buffer),
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
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

/// A signal came in between; nothing was moved.
fn is_interrupted<T>(result: &io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::Interrupted)
}

fn ended_early(filled: usize, wanted: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("the peer ended the stream after {filled} of {wanted} bytes"),
    )
}
