//! The receiving side of a stream.
//!
//! There are three ways to the bytes, and the order in which they are tried keeps them in the order of the stream:
//!
//! 1. What was *received* and not asked for yet ([`Received`]) comes first, always.
//! 2. While a receive that repeats itself is *armed*, everything comes from it: nothing else touches the socket.
//! 3. Otherwise the socket is asked: by [`recv`](Receiver::recv), which arms it; by [`read`](Receiver::read), with one
//!    receive into the caller's buffer; or at once, by the `try_` calls.
//!
//! A receive that repeats itself is armed by the first `recv` and stays so until the stream ends, is dropped, or too much
//! of what it brought lies about unread; the next `recv` arms it again. If the shard's buffers are used up it ends, and
//! `recv` waits for bytes without holding a buffer and then copies them to the heap. That can go on for ever: no task
//! waits for a buffer that another one may never give back.

use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::task::Poll;

use crate::buffer::{BufResult, IoBufMut, PooledBuf};
use crate::ring::multi::{MultiOp, current_pool};
use crate::ring::ops::poll::PollReadable;
use crate::ring::ops::recv::{Recv, StreamSocket};
use crate::ring::ops::recv_multi::RecvMulti;
use crate::ring::received::Received;
use crate::ring::socket::Inbound;
use crate::ring::{Op, is_interrupted};
use crate::sys;

/// The size of buffers from the heap where there is no pool to tell.
const HEAP_BYTES: usize = 8192;

/// Receives from one socket, which is passed to each call. Dropping it ends the receive that is armed.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    armed: Option<MultiOp<RecvMulti>>,
}

/// How the bytes come next.
enum Source {
    /// From the receive that is armed, or what is there already.
    Armed,
    /// From the socket, without the pool. So many bytes at a time.
    Heap(Inbound<Received>, usize),
}

impl Receiver {
    pub(super) async fn recv(
        &mut self,
        socket: &Rc<StreamSocket>,
    ) -> io::Result<Option<PooledBuf>> {
        loop {
            if let Some(next) = socket.with_kept(Received::next) {
                return next;
            }
            if self.armed.is_none()
                && let Source::Heap(lane, len) = self.arm(socket).await?
            {
                return recv_to_heap(lane, len).await;
            }
            self.progress(socket).await?;
        }
    }

    pub(super) async fn read<B: IoBufMut>(
        &mut self,
        socket: &Rc<StreamSocket>,
        mut buffer: B,
    ) -> BufResult<usize, B> {
        if buffer.capacity() == 0 {
            return (Ok(0), buffer);
        }
        loop {
            if let Some(result) = socket.with_kept(|received| received.take(&mut buffer)) {
                return (result, buffer);
            }
            if self.armed.is_some() {
                match self.progress(socket).await {
                    Ok(()) => continue,
                    Err(error) => return (Err(error), buffer),
                }
            }
            let lane = socket.take_inbound().await;
            if lane.with_kept(|received| received.has_next()) {
                continue;
            }
            let (result, returned) = Op::new(Recv::new(lane, buffer)).await;
            if !is_interrupted(&result) {
                return (result, returned);
            }
            buffer = returned;
        }
    }

    /// Ends the receive that is armed, if one is. Its end is known when the lane can be taken.
    pub(super) fn disarm(&mut self) {
        self.armed = None;
    }

    /// Receives without waiting.
    pub(super) fn try_read(
        &mut self,
        socket: &Rc<StreamSocket>,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if let Some(next) = socket.with_kept(|received| received.take_into(buffer)) {
            return next;
        }
        // Nothing may be in flight, not even cancelled: its bytes come first.
        let lane = socket.try_take_inbound().ok_or(io::ErrorKind::WouldBlock)?;
        sys::recv_now(lane.as_fd(), buffer)
    }

    /// Waits until a [`try_read`](Self::try_read) would not refuse.
    pub(super) async fn readable(&mut self, socket: &Rc<StreamSocket>) -> io::Result<()> {
        loop {
            if socket.with_kept(|received| received.has_next()) {
                return Ok(());
            }
            if self.armed.is_some() {
                self.progress(socket).await?;
                continue;
            }
            let lane = socket.take_inbound().await;
            if !lane.with_kept(|received| received.has_next()) {
                drop(Op::new(PollReadable::new(lane)).await?);
                return Ok(());
            }
        }
    }

    /// Copies the next bytes and leaves them where they are.
    pub(super) async fn peek(
        &mut self,
        socket: &Rc<StreamSocket>,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        loop {
            self.readable(socket).await?;
            let count = socket.with_kept(|received| {
                let front = received.front();
                let count = front.len().min(buffer.len());
                buffer[..count].copy_from_slice(&front[..count]);
                count
            });
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if let Some(end) = socket.with_kept(Received::next) {
                return end.map(|_end| 0);
            }
            match sys::peek_now(socket.as_fd(), buffer) {
                Err(error) if is_transient(&error) => {}
                result => return result,
            }
        }
    }

    /// Ends the armed receive and waits until nothing is in flight.
    pub(super) async fn settle(&mut self, socket: &Rc<StreamSocket>) {
        self.armed = None;
        drop(socket.take_inbound().await);
    }

    /// Starts to receive, unless bytes came meanwhile or the pool has none to spare.
    async fn arm(&mut self, socket: &Rc<StreamSocket>) -> io::Result<Source> {
        let lane = socket.take_inbound().await;
        if lane.with_kept(|received| received.has_next()) {
            return Ok(Source::Armed);
        }
        let Some(pool) = current_pool()? else {
            return Ok(Source::Heap(lane, HEAP_BYTES));
        };
        // The last ones are left to those that are armed, so that not all of them end as soon as one returns.
        if pool.free_count() <= pool.count() / 8 {
            return Ok(Source::Heap(lane, pool.buffer_bytes() as usize));
        }
        self.armed = Some(MultiOp::start(RecvMulti::new(lane, pool))?);
        Ok(Source::Armed)
    }

    /// Waits until the armed receive brings something or ends. Returns at once if none is armed.
    async fn progress(&mut self, socket: &StreamSocket) -> io::Result<()> {
        poll_fn(|cx| {
            if socket.with_kept(|received| received.has_next()) {
                return Poll::Ready(Ok(()));
            }
            let Some(armed) = &mut self.armed else {
                return Poll::Ready(Ok(()));
            };
            let ended = armed.poll_end(cx);
            if ended.is_ready() {
                self.armed = None;
            }
            ended
        })
        .await
    }
}

/// Waits for bytes, then receives them into a buffer from the heap.
async fn recv_to_heap(mut lane: Inbound<Received>, len: usize) -> io::Result<Option<PooledBuf>> {
    loop {
        lane = Op::new(PollReadable::new(lane)).await?;
        let mut bytes = vec![0; len];
        match sys::recv_now(lane.as_fd(), &mut bytes) {
            Ok(0) => return Ok(None),
            Ok(count) => {
                bytes.truncate(count);
                return Ok(Some(PooledBuf::from_heap(bytes)));
            }
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether waiting once more is all there is to do.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
