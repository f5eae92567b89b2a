//! What a stream received and nobody asked for yet.

use std::collections::VecDeque;
use std::io;

use super::buffer::{IoBufMut, fill};
use super::ops::pieces::Scatter;
use super::ops::receive_message::{Arrival, Envelope, Headers, Keeper, Letter};
use super::pooled::PooledBuf;
use super::socket::Kept;

/// Bytes in the order in which they came, and how the stream ended after them.
///
/// Filled by receives that repeat themselves, and by cancelled ones with what they had taken.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// Invariant: none of them is empty.
    chunks: VecDeque<PooledBuf>,
    /// What came along with the oldest bytes, for a receive that asks for it.
    attached: Option<Box<Envelope>>,
    end: Option<End>,
    /// Whether the last receive emptied the socket, as far as the kernel told.
    is_drained: bool,
}

/// What a stream received and nobody asked for, apart from its shard: copied out of the shard's buffers.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    chunks: Vec<Vec<u8>>,
    attached: Option<Box<Envelope>>,
    end: Option<End>,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The peer will send no more.
    Eof,
    /// An error of the connection, as an `errno`.
    Failed(i32),
}

impl Kept for Received {
    fn holds_something(&self) -> bool {
        !self.chunks.is_empty()
    }
}

impl Keeper for Received {
    const FLAGS: i32 = libc::MSG_CMSG_CLOEXEC;

    /// Streams rarely send descriptors.
    fn headers(&mut self) -> Option<&mut Headers> {
        None
    }

    fn keep(&mut self, letter: io::Result<Letter>) {
        match letter {
            Ok(letter) if letter.bytes.is_empty() => {}
            Ok(letter) => {
                debug_assert!(
                    self.chunks.is_empty(),
                    "the kernel was asked although bytes were there"
                );
                self.attached = Some(Box::new(letter.envelope));
                self.push(PooledBuf::from_heap(letter.bytes));
            }
            Err(error) => {
                self.end = error.raw_os_error().map(End::Failed);
            }
        }
    }
}

impl Received {
    /// Whether something can be had without asking the kernel.
    pub(crate) fn has_next(&self) -> bool {
        !self.chunks.is_empty() || self.end.is_some()
    }

    /// The oldest bytes, or else how the stream ended: `Ok(None)` at its end. `None` if the kernel has to be asked.
    pub(crate) fn next(&mut self) -> Option<io::Result<Option<PooledBuf>>> {
        self.attached = None;
        match self.chunks.pop_front() {
            Some(chunk) => Some(Ok(Some(chunk))),
            None => self.take_end().map(|result| result.map(|()| None)),
        }
    }

    /// Moves the oldest bytes into the buffer, as many as fit; zero at the end of the stream. `None` if the kernel has to
    /// be asked.
    pub(crate) fn take(&mut self, buffer: &mut impl IoBufMut) -> Option<io::Result<usize>> {
        self.take_with(|bytes| fill(buffer, bytes))
    }

    /// As [`take`](Self::take), for memory that the caller keeps.
    pub(crate) fn take_into(&mut self, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        self.take_with(|bytes| {
            let count = bytes.len().min(buffer.len());
            buffer[..count].copy_from_slice(&bytes[..count]);
            count
        })
    }

    /// Moves the oldest bytes into the buffers, with what came along with them.
    pub(crate) fn take_message(
        &mut self,
        buffers: &mut impl Scatter,
    ) -> Option<io::Result<Arrival>> {
        let attached = self.attached.take();
        let taken = self.take_with(|bytes| buffers.copy_in(bytes))?;
        Some(taken.map(|len| Arrival {
            len,
            full_len: len,
            envelope: attached.map_or_else(Envelope::empty, |attached| *attached),
        }))
    }

    fn take_with(&mut self, copy: impl FnOnce(&[u8]) -> usize) -> Option<io::Result<usize>> {
        self.attached = None;
        let Some(chunk) = self.chunks.front_mut() else {
            return self.take_end().map(|result| result.map(|()| 0));
        };
        let count = copy(chunk);
        if count == chunk.len() {
            self.chunks.pop_front();
        } else {
            chunk.advance(count);
        }
        Some(Ok(count))
    }

    /// Takes everything out, to another shard.
    pub(crate) fn take_leftover(&mut self) -> Leftover {
        Leftover {
            chunks: self.chunks.drain(..).map(|chunk| chunk.to_vec()).collect(),
            attached: self.attached.take(),
            end: self.end.take(),
        }
    }

    /// What a stream begins with that was taken from another shard.
    pub(crate) fn from_leftover(leftover: Leftover) -> Received {
        Received {
            chunks: leftover
                .chunks
                .into_iter()
                .map(PooledBuf::from_heap)
                .collect(),
            attached: leftover.attached,
            end: leftover.end,
            is_drained: false,
        }
    }

    /// The oldest bytes, which stay. Empty if there are none.
    pub(crate) fn front(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |chunk| chunk)
    }

    /// The end is the end for ever. An error is told once, and then the kernel is asked again.
    fn take_end(&mut self) -> Option<io::Result<()>> {
        match self.end? {
            End::Eof => Some(Ok(())),
            End::Failed(errno) => {
                self.end = None;
                Some(Err(io::Error::from_raw_os_error(errno)))
            }
        }
    }

    pub(crate) fn push(&mut self, chunk: PooledBuf) {
        debug_assert!(!chunk.is_empty(), "an empty chunk would read as the end");
        self.chunks.push_back(chunk);
    }

    pub(crate) fn end(&mut self, end: End) {
        self.end = Some(end);
    }

    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Notes whether the socket had more than the last receive took.
    pub(crate) fn note_rest(&mut self, has_more: bool) {
        self.is_drained = !has_more;
    }

    /// Whether the next receive had better wait for something to come.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_drained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(chunks: &[&str]) -> Received {
        let mut received = Received::default();
        for chunk in chunks {
            received.push(PooledBuf::from_heap(chunk.as_bytes().to_vec()));
        }
        received
    }

    #[test]
    fn bytes_come_before_the_end_and_the_end_stays() {
        let mut received = received(&["abc", "d"]);
        received.end(End::Eof);
        let mut buffer = [0; 2];
        assert_eq!(received.take(&mut buffer).unwrap().unwrap(), 2);
        assert_eq!(*received.next().unwrap().unwrap().unwrap(), *b"c");
        assert_eq!(received.front(), b"d");
        assert_eq!(received.take(&mut buffer).unwrap().unwrap(), 1);
        for _ in 0..2 {
            assert!(received.next().unwrap().unwrap().is_none());
            assert_eq!(received.take(&mut buffer).unwrap().unwrap(), 0);
        }
    }

    #[test]
    fn an_error_comes_after_the_bytes_and_once() {
        let mut received = received(&["abc"]);
        received.end(End::Failed(libc::ECONNRESET));
        assert!(received.next().unwrap().unwrap().is_some());
        let error = received.next().unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(received.next().is_none());
    }
}
