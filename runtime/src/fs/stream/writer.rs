//! Writing a file from start to end, behind whoever writes.
//!
//! A block goes through these states:
//!
//! ```text
//!            full, or flushed              written
//!  current ───────────────────► running ───────────► (spare)
//!                                │   ▲
//!                          fails ▼   │ the next call
//!                               failed
//! ```
//!
//! A block is given up when it is written and not before: a call that reports an error leaves the block where it is, and
//! the next call tries again.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Once;
use std::task::{Context, Poll, Waker};

use super::{Blocks, StreamOptions, offset_unit};
use crate::buffer::{IoBuf, Slice};
use crate::fs::aligned::AlignedBuf;
use crate::fs::error::FileError;
use crate::fs::file::File;
use crate::fs::transfer::{check_range, nothing_is_an_error};
use crate::ring::Op;
use crate::ring::ops::write_at::WriteAt;

/// Writes a file from start to end, with writes in flight behind.
///
/// What is written gathers in blocks, and a full block is handed to the kernel while the next one fills. A write that
/// fails there is reported by the next call, whichever that is; its data is kept and tried again by the call after that.
///
/// *Call [`flush`](Self::flush) or [`close`](Self::close) at the end.* If the writer is dropped before, writes in flight go
/// on unheard, and what was not handed over yet is lost; a debug build says so on the standard error
/// output, the first time it happens.
///
/// On a file opened to append there is one write in flight at a time, so that the blocks stay in order, and the position
/// counts from the start of the stream.
///
/// # Cancel safety
///
/// The blocks belong to the writer: a dropped call loses nothing, and the next one goes on.
///
/// # Shard affinity
///
/// Belongs to the shard that opened the file.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::{Builder, fs::{self, File, FileWriter}};
///
/// let runtime = Builder::new().shards(1).start()?;
/// # let path = std::env::temp_dir().join(format!("greenroom-writer-{}", std::process::id()));
/// # let remove = path.clone();
/// runtime.run_on(0, move || async move {
///     let mut writer = FileWriter::new(File::create(&path).await?);
///     writer.write_all(b"one\n").await?;
///     writer.write_all(b"two\n").await?;
///     writer.close().await?;
///     assert_eq!(fs::read_to_string(&path).await?, "one\ntwo\n");
///     Ok::<(), std::io::Error>(())
/// })?;
/// # std::fs::remove_file(remove)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileWriter {
    file: Rc<File>,
    depth: usize,
    blocks: Blocks,
    /// The block that fills. Invariant: not empty if there.
    current: Option<AlignedBuf>,
    /// Where in the file the current block, or the next one, begins.
    offset: u64,
    /// Blocks that were handed over, in the order of their offsets.
    behind: VecDeque<Behind>,
}

/// One block that was handed over.
struct Behind {
    /// Where its next byte goes.
    offset: u64,
    /// How many bytes are to be written yet.
    len: usize,
    /// Not started while the block has failed.
    write: Op<WriteAt<Slice<AlignedBuf>>>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Failed,
}

/// How far a look at a block came.
enum Progress {
    Running,
    Written,
}

impl FileWriter {
    /// Makes a writer that begins at the start of the file, with the sizes of [`StreamOptions::new`].
    #[must_use]
    pub fn new(file: File) -> FileWriter {
        FileWriter::with_options(file, StreamOptions::new())
    }

    pub(super) fn with_options(file: File, options: StreamOptions) -> FileWriter {
        FileWriter {
            depth: if file.is_append() { 1 } else { options.depth },
            blocks: Blocks::new(&file, options.block_size),
            current: None,
            offset: options.start,
            behind: VecDeque::new(),
            file: Rc::new(file),
        }
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file back.
    ///
    /// # Errors
    ///
    /// Gives the writer back if it holds something that was not written yet: [`flush`](Self::flush) it first.
    #[expect(
        clippy::result_large_err,
        reason = "the writer is given back, and a box would be one allocation for nothing"
    )]
    pub fn into_file(self) -> Result<File, FileWriter> {
        if self.current.is_some() || !self.behind.is_empty() {
            return Err(self);
        }
        Ok(self.release())
    }

    /// Returns where in the file the next byte goes. Counts what was accepted, written or not.
    #[must_use]
    pub fn position(&self) -> u64 {
        let filled = self.current.as_ref().map_or(0, |block| block.len());
        self.offset + filled as u64
    }

    /// Accepts bytes, waiting until there is room for at least one. Returns how many.
    ///
    /// # Errors
    ///
    /// What went wrong with an earlier block; none of `bytes` was accepted then.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped call accepted nothing.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        poll_fn(|cx| self.poll_room(cx)).await?;
        let mut block = match self.current.take() {
            Some(block) => block,
            None => self.blocks.take().map_err(|cause| self.error(cause))?,
        };
        let count = block.append(bytes);
        let is_full = block.len() == block.capacity();
        self.current = Some(block);
        if is_full && self.behind.len() < self.depth {
            // A failure is found again by the next call; these bytes were accepted.
            self.hand_over().ok();
        }
        Ok(count)
    }

    /// Accepts all of the bytes.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write). The [position](Self::position) tells how many were accepted.
    ///
    /// # Cancel safety
    ///
    /// As the caller likes: the [position](Self::position) tells how many were accepted.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(bytes).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Waits until everything accepted is written to the file. To have it on the device, sync the
    /// [`file`](Self::file) after that.
    ///
    /// # Errors
    ///
    /// What went wrong with a block, which is kept: the next call tries again. On a file of direct transfers, that what
    /// was written is no multiple of what they ask for; writing the rest of the block cures that.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// Flushes, and closes the file.
    ///
    /// # Errors
    ///
    /// As for [`flush`](Self::flush), and what the system reports of the close. The file is closed all the same: to be able
    /// to try again, flush first.
    ///
    /// # Cancel safety
    ///
    /// Not safe: as if the writer was dropped.
    pub async fn close(mut self) -> io::Result<()> {
        let flushed = self.flush().await;
        if flushed.is_err() {
            // Whoever called knows what is lost.
            self.current = None;
            self.behind.retain(|block| block.state == State::Running);
        }
        let closed = self.release().close().await;
        flushed.and(closed)
    }

    /// Lets go of everything but the file.
    fn release(self) -> File {
        let file = Rc::clone(&self.file);
        drop(self);
        let file = Rc::try_unwrap(file);
        file.unwrap_or_else(|_| unreachable!("the writer held the only other reference"))
    }

    /// How many bytes the kernel was not given.
    fn unwritten(&self) -> usize {
        let failed = self.behind.iter();
        let failed = failed.filter(|block| block.state == State::Failed);
        failed.map(|block| block.len).sum::<usize>()
            + self.current.as_ref().map_or(0, |block| block.len())
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look_behind()?;
        let is_full = |block: &AlignedBuf| block.len() == block.capacity();
        while self.current.as_ref().is_some_and(is_full) {
            if self.behind.len() < self.depth {
                self.hand_over()?;
            } else if self.poll_first(cx)?.is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look_behind()?;
        loop {
            if self.current.is_some() && self.behind.len() < self.depth {
                self.check_length()?;
                self.hand_over()?;
            }
            if self.behind.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if self.poll_first(cx)?.is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Takes note of all blocks that were written, and starts those again that had failed.
    fn look_behind(&mut self) -> io::Result<()> {
        let mut context = Context::from_waker(Waker::noop());
        let mut index = 0;
        while index < self.behind.len() {
            match self.advance(index, &mut context)? {
                Progress::Running => index += 1,
                Progress::Written => {
                    self.behind.remove(index);
                }
            }
        }
        Ok(())
    }

    /// Waits for the first block.
    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.advance(0, cx)? {
            Progress::Running => Poll::Pending,
            Progress::Written => {
                self.behind.pop_front();
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Looks how far a block is, and goes on with it.
    fn advance(&mut self, index: usize, cx: &mut Context<'_>) -> io::Result<Progress> {
        let behind = &mut self.behind[index];
        loop {
            behind.state = State::Running;
            let Poll::Ready((result, block)) = Pin::new(&mut behind.write).poll(cx) else {
                return Ok(Progress::Running);
            };
            let (count, failure) = match result.and_then(nothing_is_an_error) {
                Ok(count) => (count, None),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => (0, None),
                Err(cause) => (0, Some(cause)),
            };
            let written = block.begin() + count;
            let block = block.into_inner();
            behind.offset += count as u64;
            behind.len -= count;
            if behind.len == 0 {
                self.blocks.give_back(block);
                return Ok(Progress::Written);
            }
            behind.write = write_of(&self.file, block.slice(written..), behind.offset);
            if let Some(cause) = failure {
                behind.state = State::Failed;
                return Err(self.file.error("write", cause).at(behind.offset).into());
            }
        }
    }

    /// Hands the current block to the kernel.
    fn hand_over(&mut self) -> io::Result<()> {
        let len = self.current.as_ref().map_or(0, |block| block.len());
        check_range(&self.file, "write", self.offset, len as u64)?;
        let Some(block) = self.current.take() else {
            return Ok(());
        };
        self.behind.push_back(Behind {
            offset: self.offset,
            len,
            write: write_of(&self.file, block.slice(..), self.offset),
            state: State::Running,
        });
        self.offset += len as u64;
        // Whoever waits for it will give it a waker of their own.
        let mut cx = Context::from_waker(Waker::noop());
        self.advance(self.behind.len() - 1, &mut cx).map(drop)
    }

    /// Refuses to flush a length that a direct transfer cannot have.
    fn check_length(&self) -> io::Result<()> {
        let len = self.current.as_ref().map_or(0, |block| block.len());
        let unit = offset_unit(&self.file);
        if (len as u64).is_multiple_of(unit) {
            return Ok(());
        }
        let text = format!(
            "{len} bytes are no multiple of {unit}, which O_DIRECT asks for here: write {} more, or open the file without",
            unit - len as u64 % unit
        );
        let error = FileError::invalid("write", self.file.name.clone(), text);
        Err(error.at(self.offset).into())
    }

    fn error(&self, cause: io::Error) -> io::Error {
        self.file.error("write", cause).at(self.offset).into()
    }
}

fn write_of(file: &File, block: Slice<AlignedBuf>, offset: u64) -> Op<WriteAt<Slice<AlignedBuf>>> {
    Op::new(WriteAt::new(file.open.clone(), block, offset))
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        let lost = self.unwritten();
        for behind in self.behind.drain(..) {
            if behind.state == State::Running {
                // Cancelling it could leave a hole in the file.
                behind.write.detach();
            }
        }
        if cfg!(debug_assertions) && lost > 0 && !std::thread::panicking() {
            report_lost(&self.file, lost);
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "nobody is left to return an error to, and data is lost"
)]
fn report_lost(file: &File, lost: usize) {
    /// Once is enough to find the mistake, and a program that drops many on purpose is not flooded.
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        eprintln!(
            "greenroom: a writer of {} was dropped with {lost} bytes that were never written: call `flush` or `close` \
             (said once)",
            file.name
        );
    });
}

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWriter")
            .field("file", &self.file)
            .field("position", &self.position())
            .field("behind", &self.behind.len())
            .finish_non_exhaustive()
    }
}
