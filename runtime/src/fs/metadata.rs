//! What is known about a file.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the system knows about a file: its type, length, owner, times.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::{Builder, fs};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let metadata = fs::metadata("/proc").await?;
///     assert!(metadata.is_dir());
///     assert!(metadata.modified()? > std::time::UNIX_EPOCH);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Metadata {
    stat: libc::statx,
}

/// Whether a file is a file, a directory, a symbolic link or something else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileType {
    /// The type bits of the mode.
    bits: u32,
}

/// What `O_DIRECT` asks of reads and writes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectAlignment {
    /// The address of the buffer is a multiple of this.
    pub memory: usize,
    /// The offset in the file and the length of the buffer are multiples of this.
    pub offset: usize,
}

impl Metadata {
    pub(super) fn new(stat: libc::statx) -> Metadata {
        Metadata { stat }
    }

    /// Returns the length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "as in the standard library")]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.stat.stx_size
    }

    /// Returns the type of the file.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::of_mode(self.mode())
    }

    /// Returns whether it is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.file_type().is_dir()
    }

    /// Returns whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file_type().is_file()
    }

    /// Returns whether it is a symbolic link, which only [`symlink_metadata`](super::symlink_metadata) can find.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.file_type().is_symlink()
    }

    /// Returns who may do what.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        Permissions::from_mode(self.mode())
    }

    /// Returns type and permissions in the bits of the system.
    #[must_use]
    pub fn mode(&self) -> u32 {
        u32::from(self.stat.stx_mode)
    }

    /// Returns the number of the file, unique within its file system.
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.stat.stx_ino
    }

    /// Returns the number of the device the file is on.
    #[must_use]
    pub fn dev(&self) -> u64 {
        libc::makedev(self.stat.stx_dev_major, self.stat.stx_dev_minor)
    }

    /// Returns how many names the file has.
    #[must_use]
    pub fn nlink(&self) -> u64 {
        u64::from(self.stat.stx_nlink)
    }

    /// Returns the user the file belongs to.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.stat.stx_uid
    }

    /// Returns the group the file belongs to.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.stat.stx_gid
    }

    /// Returns how many blocks of 512 bytes the file takes up.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.stat.stx_blocks
    }

    /// Returns the size of transfers that the file system likes best.
    #[must_use]
    pub fn blksize(&self) -> u64 {
        u64::from(self.stat.stx_blksize)
    }

    /// Returns when the contents were last changed.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) if the file system does not keep it.
    pub fn modified(&self) -> io::Result<SystemTime> {
        self.time(libc::STATX_MTIME, self.stat.stx_mtime, "modification")
    }

    /// Returns when the contents were last read, as far as the file system notes that.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) if the file system does not keep it.
    pub fn accessed(&self) -> io::Result<SystemTime> {
        self.time(libc::STATX_ATIME, self.stat.stx_atime, "last access")
    }

    /// Returns when the file was made.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) if the file system does not keep it.
    pub fn created(&self) -> io::Result<SystemTime> {
        self.time(libc::STATX_BTIME, self.stat.stx_btime, "creation")
    }

    /// Returns what `O_DIRECT` asks of this file.
    ///
    /// `None` if the file cannot be opened that way, or if the kernel (before 6.1) or the file system does not tell.
    #[must_use]
    pub fn direct_alignment(&self) -> Option<DirectAlignment> {
        let is_told = self.stat.stx_mask & libc::STATX_DIOALIGN != 0;
        let alignment = DirectAlignment {
            memory: self.stat.stx_dio_mem_align as usize,
            offset: self.stat.stx_dio_offset_align as usize,
        };
        // Zero says that direct transfers are not supported.
        (is_told && alignment.memory > 0 && alignment.offset > 0).then_some(alignment)
    }

    fn time(&self, bit: u32, time: libc::statx_timestamp, what: &str) -> io::Result<SystemTime> {
        if self.stat.stx_mask & bit == 0 {
            let text = format!("the file system does not keep the time of {what}");
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
        let whole = if time.tv_sec < 0 {
            UNIX_EPOCH.checked_sub(seconds)
        } else {
            UNIX_EPOCH.checked_add(seconds)
        };
        whole
            .and_then(|whole| whole.checked_add(Duration::from_nanos(time.tv_nsec.into())))
            .ok_or_else(|| {
                let text = format!("the time of {what} is out of range: {} s", time.tv_sec);
                io::Error::new(io::ErrorKind::InvalidData, text)
            })
    }
}

impl std::fmt::Debug for Metadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metadata")
            .field("file_type", &self.file_type())
            .field("len", &self.len())
            .field("mode", &format_args!("{:o}", self.mode()))
            .field("modified", &self.modified().ok())
            .finish_non_exhaustive()
    }
}

impl FileType {
    pub(super) fn of_mode(mode: u32) -> FileType {
        FileType {
            bits: mode & libc::S_IFMT,
        }
    }

    /// Returns whether it is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.bits == libc::S_IFDIR
    }

    /// Returns whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.bits == libc::S_IFREG
    }

    /// Returns whether it is a symbolic link.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.bits == libc::S_IFLNK
    }

    /// Returns whether it is a named pipe.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        self.bits == libc::S_IFIFO
    }

    /// Returns whether it is a socket.
    #[must_use]
    pub fn is_socket(&self) -> bool {
        self.bits == libc::S_IFSOCK
    }

    /// Returns whether it is a block device.
    #[must_use]
    pub fn is_block_device(&self) -> bool {
        self.bits == libc::S_IFBLK
    }

    /// Returns whether it is a character device.
    #[must_use]
    pub fn is_char_device(&self) -> bool {
        self.bits == libc::S_IFCHR
    }
}
