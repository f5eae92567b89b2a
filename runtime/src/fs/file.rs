//! An open file.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use super::error::{FileError, Name, raw_os_error};
use super::metadata::{DirectAlignment, Metadata};
use super::options::OpenOptions;
use super::{pool, transfer};
use crate::buffer::{BufResult, IoBuf, IoBufMut};
use crate::ring::backend::SyncScope;
use crate::ring::file::FileRef;
use crate::ring::ops::file_call::{FileCall, FileRequest};
use crate::ring::ops::stat::{Stat, StatTarget};
use crate::ring::{Op, is_interrupted};
use crate::sys;

/// An open file.
///
/// Reads and writes say where in the file they act, so any number of them can run at the same time: there is no
/// position to share. They take a buffer by value and give it back with the result. To read or write a file from its
/// start to its end, use
/// [`FileReader`](super::FileReader) and [`FileWriter`](super::FileWriter).
///
/// Dropping the file closes it without waiting, and without anybody learning how that ended: use
/// [`close`](Self::close) to know.
///
/// # Shard affinity
///
/// Belongs to the shard that opened it. [`into_std`](Self::into_std) and [`from_std`](Self::from_std) move a file to
/// another shard.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::{Builder, fs::File};
///
/// let runtime = Builder::new().shards(1).start()?;
/// # let path = std::env::temp_dir().join(format!("greenroom-file-{}", std::process::id()));
/// # let remove = path.clone();
/// runtime.run_on(0, || async {
///     let file = File::create(path).await?;
///     file.write_all_at("log entry", 0).await.0?;
///     file.sync_data().await?;
///     assert_eq!(file.metadata().await?.len(), 9);
///     file.close().await
/// })?;
/// # std::fs::remove_file(remove)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct File {
    pub(super) open: FileRef,
    pub(super) name: Name,
    pub(super) direct: Direct,
    is_append: bool,
}

/// Whether transfers go past the page cache, and what that asks of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direct {
    No,
    Aligned(DirectAlignment),
    /// They do, but nobody told the alignment: the kernel has to find out what is wrong.
    Unknown,
}

impl Direct {
    pub(super) fn is_asked_for(flags: i32) -> bool {
        flags & libc::O_DIRECT != 0
    }
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// As for [`OpenOptions::open`].
    ///
    /// # Cancel safety
    ///
    /// As for [`OpenOptions::open`].
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().read(true).open(path).await
    }

    /// Opens a file for writing: makes it, or empties it if it is there.
    ///
    /// # Errors
    ///
    /// As for [`OpenOptions::open`].
    ///
    /// # Cancel safety
    ///
    /// As for [`OpenOptions::open`].
    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.open(path).await
    }

    /// Makes a file, which must not be there before, for reading and writing.
    ///
    /// # Errors
    ///
    /// As for [`OpenOptions::open`].
    ///
    /// # Cancel safety
    ///
    /// As for [`OpenOptions::open`].
    pub async fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        options.open(path).await
    }

    /// Returns options to choose from how a file is opened.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Takes over a file of the standard library.
    #[must_use]
    pub fn from_std(file: std::fs::File) -> File {
        let fd = OwnedFd::from(file);
        let flags = sys::open_flags(&fd);
        File {
            name: Name::Descriptor(fd.as_raw_fd()),
            open: FileRef::new(fd),
            direct: if Direct::is_asked_for(flags) {
                Direct::Unknown
            } else {
                Direct::No
            },
            is_append: flags & libc::O_APPEND != 0,
        }
    }

    /// Gives the file to the standard library, which may move it anywhere.
    ///
    /// # Errors
    ///
    /// Gives the file back if an operation on it that was cancelled has not ended yet.
    pub fn into_std(self) -> Result<std::fs::File, File> {
        let File {
            open,
            name,
            direct,
            is_append,
        } = self;
        match open.into_fd() {
            Ok(fd) => Ok(fd.into()),
            Err(open) => Err(File {
                open,
                name,
                direct,
                is_append,
            }),
        }
    }

    /// Takes over a descriptor that was opened with these flags.
    pub(super) async fn opened(open: FileRef, name: Name, flags: i32) -> io::Result<File> {
        let mut file = File {
            open,
            name,
            direct: Direct::No,
            is_append: flags & libc::O_APPEND != 0,
        };
        if Direct::is_asked_for(flags) {
            let alignment = file.metadata().await?.direct_alignment();
            file.direct = alignment.map_or(Direct::Unknown, Direct::Aligned);
        }
        Ok(file)
    }

    /// Makes a second handle to the same open file.
    ///
    /// # Errors
    ///
    /// If the process is out of descriptors.
    pub fn try_clone(&self) -> io::Result<File> {
        let fd = self.open.as_fd().try_clone_to_owned();
        Ok(File {
            open: FileRef::new(fd.map_err(|cause| self.error("clone", cause))?),
            name: self.name.clone(),
            direct: self.direct,
            is_append: self.is_append,
        })
    }

    /// Reads once from a position. Returns how many bytes came; 0 at or behind the end of the file.
    ///
    /// Fills the buffer from its start, up to its capacity; what was in it is overwritten, and a vector then holds what
    /// was read and nothing else. To keep what is there and read behind it, pass `buffer.slice(buffer.len()..)`. One
    /// read moves at most 2 147 479 552 bytes, and may move fewer than the file has.
    ///
    /// # Errors
    ///
    /// If the range reaches beyond 2^63 bytes, if the file asks for an alignment that is not there, or what the system
    /// reports.
    ///
    /// # Cancel safety
    ///
    /// Safe for the file. The buffer is lost.
    pub async fn read_at<B: IoBufMut>(&self, buffer: B, offset: u64) -> BufResult<usize, B> {
        transfer::read_at(self, buffer, offset).await
    }

    /// Reads from a position until the buffer's capacity is full.
    ///
    /// `Vec::with_capacity` may reserve more than asked for: use an array, a boxed slice, or
    /// [`slice`](IoBuf::slice) to say exactly how much.
    ///
    /// # Errors
    ///
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends first; otherwise as for
    /// [`read_at`](Self::read_at). [`FileError::transferred`] tells how many bytes are in the buffer.
    ///
    /// # Cancel safety
    ///
    /// As for [`read_at`](Self::read_at).
    pub async fn read_exact_at<B: IoBufMut>(&self, buffer: B, offset: u64) -> BufResult<(), B> {
        transfer::read_exact_at(self, buffer, offset).await
    }

    /// Reads once from a position into several buffers, in order.
    ///
    /// The kernel takes 1024 buffers at a time; more are left empty.
    ///
    /// # Errors
    ///
    /// As for [`read_at`](Self::read_at).
    ///
    /// # Cancel safety
    ///
    /// As for [`read_at`](Self::read_at).
    pub async fn read_vectored_at<B: IoBufMut>(
        &self,
        buffers: Vec<B>,
        offset: u64,
    ) -> BufResult<usize, Vec<B>> {
        transfer::read_vectored_at(self, buffers, offset).await
    }

    /// Writes once to a position. Returns how many bytes were written, which may be fewer than there are.
    ///
    /// A file opened to append writes to its end, whatever the position.
    ///
    /// # Errors
    ///
    /// As for [`read_at`](Self::read_at). A write that a file size limit cuts off reports what was written, and only
    /// the next one the limit.
    ///
    /// # Cancel safety
    ///
    /// Not safe: a dropped write may have written any part of the buffer, or nothing, and may do so a little later.
    pub async fn write_at<B: IoBuf>(&self, buffer: B, offset: u64) -> BufResult<usize, B> {
        transfer::write_at(self, buffer, offset).await
    }

    /// Writes the whole buffer to a position.
    ///
    /// # Errors
    ///
    /// As for [`write_at`](Self::write_at). [`FileError::transferred`] tells how many bytes were written before.
    ///
    /// # Cancel safety
    ///
    /// As for [`write_at`](Self::write_at).
    pub async fn write_all_at<B: IoBuf>(&self, buffer: B, offset: u64) -> BufResult<(), B> {
        transfer::write_all_at(self, buffer, offset).await
    }

    /// Writes once from several buffers, in order, to a position. Returns how many bytes were written.
    ///
    /// # Errors
    ///
    /// As for [`write_at`](Self::write_at).
    ///
    /// # Cancel safety
    ///
    /// As for [`write_at`](Self::write_at).
    pub async fn write_vectored_at<B: IoBuf>(
        &self,
        buffers: Vec<B>,
        offset: u64,
    ) -> BufResult<usize, Vec<B>> {
        transfer::write_vectored_at(self, buffers, offset).await
    }

    /// Writes all of the buffers, in order, to a position.
    ///
    /// # Errors
    ///
    /// As for [`write_all_at`](Self::write_all_at).
    ///
    /// # Cancel safety
    ///
    /// As for [`write_at`](Self::write_at).
    pub async fn write_all_vectored_at<B: IoBuf>(
        &self,
        buffers: Vec<B>,
        offset: u64,
    ) -> BufResult<(), Vec<B>> {
        transfer::write_all_vectored_at(self, buffers, offset).await
    }

    /// Waits until everything written to the file before is on its device.
    ///
    /// # Errors
    ///
    /// What the system reports. Data written since the last sync may be lost then, and another sync that succeeds does
    /// not say otherwise.
    ///
    /// # Cancel safety
    ///
    /// Safe: it happens or it does not.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.call("sync", FileRequest::Sync(SyncScope::All)).await
    }

    /// As [`sync_all`](Self::sync_all), without times and whatever else is not needed to find the data again.
    ///
    /// # Errors
    ///
    /// As for [`sync_all`](Self::sync_all).
    ///
    /// # Cancel safety
    ///
    /// As for [`sync_all`](Self::sync_all).
    pub async fn sync_data(&self) -> io::Result<()> {
        self.call("sync", FileRequest::Sync(SyncScope::Data)).await
    }

    /// Reserves space for a range, which then reads as zeroes where nothing was written, and makes the file longer if
    /// it has to be.
    ///
    /// Later writes to the range do not fail for want of space.
    ///
    /// # Errors
    ///
    /// If the range is empty, if the space is not there, if the file system cannot do it
    /// ([`Unsupported`](io::ErrorKind::Unsupported)), or what else the system reports.
    ///
    /// # Cancel safety
    ///
    /// Safe: it happens or it does not.
    pub async fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        transfer::check_range(self, "allocate", offset, len)?;
        if len == 0 {
            let text = "0 bytes cannot be reserved: ask for at least one".to_owned();
            return Err(FileError::invalid("allocate", self.name.clone(), text).into());
        }
        let request = FileRequest::Allocate {
            mode: 0,
            offset,
            len,
        };
        self.call("allocate", request).await
    }

    /// Cuts the file off at a length, or makes it longer with zeroes.
    ///
    /// # Errors
    ///
    /// If the file is not open for writing or the length is too large for the file system.
    ///
    /// # Cancel safety
    ///
    /// Safe: it happens or it does not.
    pub async fn set_len(&self, len: u64) -> io::Result<()> {
        transfer::check_range(self, "set the length of", 0, len)?;
        let operation = "set the length of";
        let refused = match self.call(operation, FileRequest::SetLen(len)).await {
            Err(error) if raw_os_error(&error) == Some(libc::EINVAL) => error,
            ended => return ended,
        };
        // Kernels before 6.9 say this of an operation they do not know; and the call itself says it of a file that is
        // not open for writing. Asking again, outside of the ring, tells which it was.
        let Ok(fd) = self.open.as_fd().try_clone_to_owned() else {
            return Err(refused);
        };
        let file = Arc::new(std::fs::File::from(fd));
        let result = pool::call(move || file.set_len(len)).await;
        result.map_err(|cause| self.error(operation, cause).into())
    }

    /// Asks what is known about the file.
    ///
    /// # Errors
    ///
    /// What the system reports.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        loop {
            let target = StatTarget::File(self.open.clone());
            let (result, _target) = Op::new(Stat::new(target)).await;
            if !is_interrupted(&result) {
                let stat = result.map_err(|cause| self.error("stat", cause))?;
                return Ok(Metadata::new(stat));
            }
        }
    }

    /// Closes the file, after the end of operations that were cancelled.
    ///
    /// Whoever forgets the future of an operation (`mem::forget`) instead of dropping it makes this wait for ever.
    ///
    /// # Errors
    ///
    /// What the system reports; the file is closed all the same. Some file systems report here what went wrong with
    /// earlier writes. To be sure of them, [`sync_all`](Self::sync_all) first.
    ///
    /// # Cancel safety
    ///
    /// Safe: the file is closed even if the future is dropped.
    pub async fn close(self) -> io::Result<()> {
        let File { open, name, .. } = self;
        let closed = open.close().await;
        closed.map_err(|cause| FileError::new("close", name, cause).into())
    }

    /// Returns what reads and writes have to be aligned to, if the file was opened for direct transfers.
    ///
    /// `None` as well if the file system does not tell: multiples of 4096 are then enough in most places.
    #[must_use]
    pub fn direct_alignment(&self) -> Option<DirectAlignment> {
        match self.direct {
            Direct::Aligned(alignment) => Some(alignment),
            Direct::No | Direct::Unknown => None,
        }
    }

    /// Whether every write goes to the end.
    pub(super) fn is_append(&self) -> bool {
        self.is_append
    }

    pub(super) fn error(&self, operation: &'static str, cause: io::Error) -> FileError {
        FileError::new(operation, self.name.clone(), cause)
    }

    async fn call(&self, operation: &'static str, request: FileRequest) -> io::Result<()> {
        loop {
            let result = Op::new(FileCall::new(self.open.clone(), request)).await;
            if !is_interrupted(&result) {
                return result.map_err(|cause| self.error(operation, cause).into());
            }
        }
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.open.as_fd()
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("fd", &self.open.as_raw_fd())
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
