//! Directories: what is in them, and removing all of it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::fs::{DirEntryExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::{FileError, Name, system_path};
use super::metadata::{FileType, Metadata};
use super::paths::symlink_metadata;
use super::pool;
use crate::blocking::BlockingHandle;

/// How many entries one visit to the pool brings.
const BATCH: usize = 256;

/// Starts to read what is in a directory.
///
/// # Errors
///
/// What the system reports: that there is no such directory, that it is none, or that it must not be read.
///
/// # Cancel safety
///
/// Safe.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::{Builder, fs};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let mut names = Vec::new();
///     let mut entries = fs::read_dir("/proc/self").await?;
///     while let Some(entry) = entries.next_entry().await? {
///         names.push(entry.file_name().to_owned());
///     }
///     assert!(names.iter().any(|name| name == "status"));
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path = path.as_ref();
    system_path("read directory", path)?;
    let mut entries = ReadDir {
        path: path.into(),
        found: VecDeque::new(),
        source: Source::Ended,
    };
    let opened = path.to_owned();
    let first = pool::start(move || std::fs::read_dir(opened).map(next_batch));
    entries.source = Source::Reading(first.map_err(|cause| entries.error(cause))?);
    entries.read_batch().await?;
    Ok(entries)
}

/// The entries of a directory, made by [`read_dir`].
///
/// Names `.` and `..` are left out, the order is the file system's. What is added or removed meanwhile may be among them
/// or not.
pub struct ReadDir {
    path: Rc<Path>,
    found: VecDeque<io::Result<Found>>,
    source: Source,
}

/// Where further entries come from.
enum Source {
    /// The pool is at it.
    Reading(BlockingHandle<io::Result<Batch>>),
    /// To be asked when those that were found are used up.
    Waiting(std::fs::ReadDir),
    /// There are no more.
    Ended,
}

type Batch = (Vec<io::Result<Found>>, Option<std::fs::ReadDir>);

/// An entry as it comes from the pool.
struct Found {
    name: OsString,
    file_type: FileType,
    ino: u64,
}

impl ReadDir {
    /// Returns the next entry; `None` at the end.
    ///
    /// # Errors
    ///
    /// What the system reports.
    ///
    /// # Cancel safety
    ///
    /// Safe: no entry is lost.
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        loop {
            if let Some(found) = self.found.pop_front() {
                let found = found.map_err(|cause| self.error(cause))?;
                return Ok(Some(DirEntry {
                    dir: Rc::clone(&self.path),
                    found,
                }));
            }
            if let Source::Ended = self.source {
                return Ok(None);
            }
            self.read_batch().await?;
        }
    }

    async fn read_batch(&mut self) -> io::Result<()> {
        if let Source::Waiting(_) = self.source {
            let Source::Waiting(dir) = std::mem::replace(&mut self.source, Source::Ended) else {
                unreachable!("just seen");
            };
            let next = pool::start(move || Ok(next_batch(dir)));
            self.source = Source::Reading(next.map_err(|cause| self.error(cause))?);
        }
        let Source::Reading(handle) = &mut self.source else {
            return Ok(());
        };
        let batch = pool::finish(handle).await.flatten();
        self.source = Source::Ended;
        let (found, rest) = batch.map_err(|cause| self.error(cause))?;
        self.found.extend(found);
        self.source = rest.map_or(Source::Ended, Source::Waiting);
        Ok(())
    }

    fn error(&self, cause: io::Error) -> io::Error {
        FileError::new("read directory", Name::Path(self.path.to_path_buf()), cause).into()
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Takes entries until there are enough for one visit, or no more. Runs on the pool.
fn next_batch(mut dir: std::fs::ReadDir) -> Batch {
    let mut found = Vec::new();
    while found.len() < BATCH {
        let Some(entry) = dir.next() else {
            return (found, None);
        };
        let entry = entry.and_then(|entry| {
            // Some file systems do not tell the type with the name: then this asks about the file.
            let file_type = FileType::from(entry.file_type()?);
            Ok(Found {
                ino: entry.ino(),
                name: entry.file_name(),
                file_type,
            })
        });
        match entry {
            // It was removed after its name was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            entry => found.push(entry),
        }
    }
    (found, Some(dir))
}

/// One entry of a directory.
pub struct DirEntry {
    dir: Rc<Path>,
    found: Found,
}

impl DirEntry {
    /// Returns the name within the directory.
    #[must_use]
    pub fn file_name(&self) -> &std::ffi::OsStr {
        &self.found.name
    }

    /// Returns the path: that of the directory, as it was given, with the name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.join(&self.found.name)
    }

    /// Returns the type, that of the link itself for a symbolic link.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.found.file_type
    }

    /// Returns the number of the file, unique within its file system.
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.found.ino
    }

    /// Asks what else is known about it, about the link itself if it is a symbolic link.
    ///
    /// # Errors
    ///
    /// As for [`symlink_metadata`], above all that it was removed meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        symlink_metadata(self.path()).await
    }
}

impl fmt::Debug for DirEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirEntry").field(&self.path()).finish()
    }
}

impl From<std::fs::FileType> for FileType {
    fn from(file_type: std::fs::FileType) -> FileType {
        let known = [
            (file_type.is_file(), libc::S_IFREG),
            (file_type.is_dir(), libc::S_IFDIR),
            (file_type.is_symlink(), libc::S_IFLNK),
            (file_type.is_fifo(), libc::S_IFIFO),
            (file_type.is_socket(), libc::S_IFSOCK),
            (file_type.is_block_device(), libc::S_IFBLK),
            (file_type.is_char_device(), libc::S_IFCHR),
        ];
        let bits = known.iter().find(|(is_it, _)| *is_it);
        FileType::of_mode(bits.map_or(0, |(_, bits)| *bits))
    }
}

/// Removes a directory with all that is in it. Symbolic links are removed, not followed.
///
/// # Errors
///
/// What the system reports. A part may have been removed.
///
/// # Cancel safety
///
/// Not safe: once begun it goes on after the future was dropped.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    system_path("remove", path)?;
    let removed = path.to_owned();
    let result = pool::call(move || std::fs::remove_dir_all(&removed)).await;
    result.map_err(|cause| FileError::new("remove", Name::Path(path.to_owned()), cause).into())
}
