//! Reading a file from start to end, ahead of whoever reads.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{Blocks, StreamOptions, offset_unit};
use crate::buffer::{IoBuf, Slice};
use crate::fs::aligned::AlignedBuf;
use crate::fs::file::File;
use crate::fs::transfer::check_range;
use crate::ring::Op;
use crate::ring::ops::read_at::ReadAt;

/// Reads a file from start to end, with reads in flight ahead.
///
/// # Cancel safety
///
/// The reads in flight belong to the reader: a dropped call loses nothing, and the next one goes on.
///
/// # Shard affinity
///
/// Belongs to the shard that opened the file.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::{Builder, fs::{File, FileReader}};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let mut reader = FileReader::new(File::open("/proc/self/status").await?);
///     let mut name = Vec::new();
///     reader.read_until(b'\n', &mut name).await?;
///     assert!(name.starts_with(b"Name:"));
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileReader {
    file: File,
    depth: usize,
    blocks: Blocks,
    /// What was read last, and how much of it was taken.
    current: Option<AlignedBuf>,
    taken: usize,
    /// The offset of the first byte that was not taken.
    position: u64,
    /// Reads of consecutive ranges. Invariant: the first begins where `current` ends.
    ahead: VecDeque<Ahead>,
    /// The last read found the end of the file. Only one read is tried from there on, until it finds more.
    is_at_end: bool,
}

/// One read of a range.
struct Ahead {
    offset: u64,
    len: usize,
    /// `None` until it is started.
    read: Option<Op<ReadAt<Slice<AlignedBuf>>>>,
}

impl FileReader {
    /// Makes a reader that begins at the start of the file, with the sizes of [`StreamOptions::new`].
    #[must_use]
    pub fn new(file: File) -> FileReader {
        FileReader::with_options(file, StreamOptions::new())
    }

    pub(super) fn with_options(file: File, options: StreamOptions) -> FileReader {
        FileReader {
            depth: options.depth,
            blocks: Blocks::new(&file, options.block_size),
            current: None,
            taken: 0,
            position: options.start,
            ahead: VecDeque::new(),
            is_at_end: false,
            file,
        }
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file back. Reads in flight are cancelled.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// Returns where in the file the next byte comes from.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes on at another place of the file. Reads in flight are cancelled.
    pub fn seek(&mut self, position: u64) {
        if let Some(block) = self.current.take() {
            self.blocks.give_back(block);
        }
        self.ahead.clear();
        self.taken = 0;
        self.is_at_end = false;
        self.position = position;
    }

    /// Returns bytes that were read and not [consumed](Self::consume), waiting for some; none at the end of the file.
    ///
    /// After the end it looks again with each call, so a file that grows can be followed.
    ///
    /// # Errors
    ///
    /// What the system reports. The next call tries again at the same place.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn fill_buf(&mut self) -> io::Result<&[u8]> {
        poll_fn(|cx| self.poll_fill(cx)).await?;
        Ok(self.buffered())
    }

    /// Takes bytes that [`fill_buf`](Self::fill_buf) returned; more than those are not taken.
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.buffered().len());
        self.taken += count;
        self.position += count as u64;
    }

    /// Reads what is there, waiting for at least one byte. Returns how many came; 0 at the end of the file.
    ///
    /// # Errors
    ///
    /// As for [`fill_buf`](Self::fill_buf).
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let found = self.fill_buf().await?;
        let count = found.len().min(into.len());
        into[..count].copy_from_slice(&found[..count]);
        self.consume(count);
        Ok(count)
    }

    /// Reads until the slice is full.
    ///
    /// # Errors
    ///
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends first; otherwise as for
    /// [`fill_buf`](Self::fill_buf). The [position](Self::position) tells how much was read.
    ///
    /// # Cancel safety
    ///
    /// As the caller likes: what was read is in the slice, and the [position](Self::position) tells how much that is.
    pub async fn read_exact(&mut self, into: &mut [u8]) -> io::Result<()> {
        let start = self.position;
        let wanted = into.len();
        let mut filled = 0;
        while filled < wanted {
            let count = self.read(&mut into[filled..]).await?;
            if count == 0 {
                let cause = io::Error::new(io::ErrorKind::UnexpectedEof, "the file ended");
                let error = self.file.error("read", cause).at(start);
                return Err(error.after(filled, wanted).into());
            }
            filled += count;
        }
        Ok(())
    }

    /// Reads until a byte was found, which is read too, or the file ends, and adds what was read to `into`. Returns how
    /// many bytes that is; 0 at the end of the file.
    ///
    /// # Errors
    ///
    /// As for [`fill_buf`](Self::fill_buf). What was read before is in `into`.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was read before is in `into`.
    pub async fn read_until(&mut self, byte: u8, into: &mut Vec<u8>) -> io::Result<usize> {
        let mut total = 0;
        loop {
            let found = self.fill_buf().await?;
            let place = found.iter().position(|&found| found == byte);
            let count = place.map_or(found.len(), |place| place + 1);
            into.extend_from_slice(&found[..count]);
            self.consume(count);
            total += count;
            if place.is_some() || count == 0 {
                return Ok(total);
            }
        }
    }

    /// Reads until the file ends, and adds what was read to `into`. Returns how many bytes that is.
    ///
    /// # Errors
    ///
    /// As for [`fill_buf`](Self::fill_buf). What was read before is in `into`.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was read before is in `into`.
    pub async fn read_to_end(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let mut total = 0;
        loop {
            let found = self.fill_buf().await?;
            let count = found.len();
            if count == 0 {
                return Ok(total);
            }
            into.extend_from_slice(found);
            self.consume(count);
            total += count;
        }
    }

    fn buffered(&self) -> &[u8] {
        self.current
            .as_deref()
            .map_or(&[], |block| &block[self.taken..])
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.buffered().is_empty() {
            return Poll::Ready(Ok(()));
        }
        if let Some(block) = self.current.take() {
            self.blocks.give_back(block);
        }
        self.taken = 0;
        loop {
            self.read_ahead()?;
            let first = &mut self.ahead[0];
            let read = first.read.as_mut().expect("all reads were started");
            let Poll::Ready((result, block)) = Pin::new(read).poll(cx) else {
                return Poll::Pending;
            };
            first.read = None;
            let block = block.into_inner();
            match result {
                Ok(count) => {
                    self.note(count, block);
                    return Poll::Ready(Ok(()));
                }
                Err(cause) => {
                    self.blocks.give_back(block);
                    if cause.kind() != io::ErrorKind::Interrupted {
                        let error = self.file.error("read", cause);
                        return Poll::Ready(Err(error.at(self.position).into()));
                    }
                }
            }
        }
    }

    /// Takes over what the first read brought.
    fn note(&mut self, count: usize, block: AlignedBuf) {
        let first = &mut self.ahead[0];
        // A direct read begins at a multiple, which may lie before what was taken already.
        let known = usize::try_from(self.position - first.offset).unwrap_or(usize::MAX);
        if count == first.len {
            self.ahead.pop_front();
        } else if count == 0 || !(count as u64).is_multiple_of(offset_unit(&self.file)) {
            // The end of the file, which a direct read shows by a count that is no multiple. What was asked for behind
            // it is of no use.
            self.ahead.clear();
        } else {
            // A short read: the rest comes next, before what was asked for behind it.
            first.offset += count as u64;
            first.len -= count;
        }
        self.taken = known.min(count);
        self.is_at_end = self.taken == count;
        self.current = Some(block);
    }

    /// Starts reads until enough are in flight.
    fn read_ahead(&mut self) -> io::Result<()> {
        let depth = if self.is_at_end { 1 } else { self.depth };
        while self.ahead.len() < depth {
            let offset = match self.ahead.back() {
                // Beyond what a file can have, starting it is refused.
                Some(last) => last.offset.saturating_add(last.len as u64),
                None => self.position - self.position % offset_unit(&self.file),
            };
            let len = self.blocks.size;
            self.ahead.push_back(Ahead {
                offset,
                len,
                read: None,
            });
        }
        for index in 0..self.ahead.len() {
            if self.ahead[index].read.is_none() {
                self.start(index)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, index: usize) -> io::Result<()> {
        let ahead = &mut self.ahead[index];
        check_range(&self.file, "read", ahead.offset, ahead.len as u64)?;
        let block = self.blocks.take();
        let block = block.map_err(|cause| self.file.error("read", cause))?;
        let block = block.slice(..ahead.len);
        let mut read = Op::new(ReadAt::new(self.file.open.clone(), block, ahead.offset));
        // Whoever waits for it will give it a waker of their own.
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(&mut read).poll(&mut cx) {
            Poll::Pending => ahead.read = Some(read),
            // Only without a shard. What was read, were it anything, can be read again.
            Poll::Ready((result, _block)) => {
                result.map_err(|cause| self.file.error("read", cause).at(ahead.offset))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileReader")
            .field("file", &self.file)
            .field("position", &self.position)
            .field("ahead", &self.ahead.len())
            .finish_non_exhaustive()
    }
}
