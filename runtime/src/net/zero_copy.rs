//! Writing without copying.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::transfer;
use crate::buffer::IoBuf;
use crate::ring::backend::Extent;
use crate::ring::multi::{MultiOp, has_zero_copy};
use crate::ring::ops::recv::StreamSocket;
use crate::ring::ops::send_zero_copy::SendZeroCopy;

/// A buffer that was written without copying, on its way back. Awaiting it yields the buffer.
///
/// The network reads from the buffer until the peer has acknowledged the bytes, so this may take as long as the peer
/// likes. Dropping it leaves the buffer to the shard, which drops it when it is free.
pub struct Returning<B: IoBuf> {
    state: State<B>,
}

enum State<B: IoBuf> {
    InUse(MultiOp<SendZeroCopy<B>>),
    Back(B),
    Taken,
}

impl<B: IoBuf> Returning<B> {
    /// Whether the kernel sent from the buffer itself, instead of copying it first.
    pub fn is_in_use(&self) -> bool {
        matches!(self.state, State::InUse(_))
    }
}

// The buffer is moved freely: the kernel only knows of the one in the operation.
impl<B: IoBuf> Unpin for Returning<B> {}

impl<B: IoBuf> Future for Returning<B> {
    type Output = B;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B> {
        if let State::InUse(operation) = &mut self.state {
            let ended = operation.poll_end(cx);
            if ended.is_ready() {
                self.state = State::Taken;
            }
            return ended;
        }
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Back(buffer) => Poll::Ready(buffer),
            _ => panic!("a buffer comes back once"),
        }
    }
}

impl<B: IoBuf> fmt::Debug for Returning<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returning")
            .field("is_in_use", &self.is_in_use())
            .finish()
    }
}

/// Sends once without copying; copies where that cannot be had.
pub(super) async fn write<B: IoBuf>(
    socket: &Rc<StreamSocket>,
    buffer: B,
) -> (io::Result<usize>, Returning<B>) {
    if buffer.is_empty() || !has_zero_copy() {
        return write_copied(socket, buffer).await;
    }
    let lane = socket.take_outbound().await;
    let mut operation = MultiOp::start(SendZeroCopy::new(lane, buffer))
        .expect("the shard that has it was asked just now");
    let outcome = poll_fn(|cx| operation.poll_first(cx)).await;
    match outcome.into_result() {
        Ok(count) => {
            let state = State::InUse(operation);
            (Ok(count as usize), Returning { state })
        }
        Err(error) if is_refusal(&error) => {
            let buffer = poll_fn(|cx| operation.poll_end(cx)).await;
            write_copied(socket, buffer).await
        }
        Err(error) => {
            let state = State::InUse(operation);
            (Err(error), Returning { state })
        }
    }
}

async fn write_copied<B: IoBuf>(
    socket: &Rc<StreamSocket>,
    buffer: B,
) -> (io::Result<usize>, Returning<B>) {
    let (result, buffer) = transfer::send(socket, buffer, Extent::All).await;
    let state = State::Back(buffer);
    (result, Returning { state })
}

/// Whether the kernel would rather copy: not for this socket, or no memory left to keep track of the buffers in use.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOMEM | libc::ENOBUFS | libc::EINTR)
    )
}
