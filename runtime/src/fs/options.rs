//! How a file is opened.

use std::ffi::CString;
use std::io;
use std::path::Path;

use super::error::{FileError, Name, path_of, system_path};
use super::file::{Direct, File};
use crate::ring::file::FileRef;
use crate::ring::ops::close::room_to_open;
use crate::ring::ops::open::Open;
use crate::ring::{Op, is_interrupted};

/// How a file is to be opened.
///
/// The names and their meaning are those of [`std::fs::OpenOptions`], and so are the combinations that are refused.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::{Builder, fs::OpenOptions};
///
/// let runtime = Builder::new().shards(1).start()?;
/// # let path = std::env::temp_dir().join(format!("greenroom-options-{}", std::process::id()));
/// # let remove = path.clone();
/// runtime.run_on(0, || async {
///     let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).await?;
///     file.write_all_at("hello", 0).await.0?;
///     let (count, bytes) = file.read_at([0; 3], 1).await;
///     assert_eq!((count?, &bytes), (3, b"ell"));
///     file.close().await
/// })?;
/// # std::fs::remove_file(remove)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Access and creation: bits of [`Wish`].
    wishes: u8,
    flags: i32,
    mode: libc::mode_t,
}

/// One thing that may be asked of an open.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Wish {
    Read = 1,
    Write = 1 << 1,
    Append = 1 << 2,
    Truncate = 1 << 3,
    Create = 1 << 4,
    CreateNew = 1 << 5,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

impl OpenOptions {
    /// Asks for nothing yet: choose at least one of reading, writing and appending.
    #[must_use]
    pub fn new() -> OpenOptions {
        OpenOptions {
            wishes: 0,
            flags: 0,
            mode: 0o666,
        }
    }

    /// Sets whether the file can be read.
    pub fn read(&mut self, read: bool) -> &mut OpenOptions {
        self.wish(Wish::Read, read)
    }

    /// Sets whether the file can be written.
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.wish(Wish::Write, write)
    }

    /// Sets whether every write goes to the end of the file, wherever the write says.
    ///
    /// The system finds the end and writes there in one step, so several writers do not overwrite each other. Writes
    /// that run at the same time land in any order.
    pub fn append(&mut self, append: bool) -> &mut OpenOptions {
        self.wish(Wish::Append, append)
    }

    /// Sets whether a file that is there is emptied. Needs [`write`](Self::write).
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.wish(Wish::Truncate, truncate)
    }

    /// Sets whether the file is made if it is not there. Needs [`write`](Self::write) or [`append`](Self::append).
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.wish(Wish::Create, create)
    }

    /// Sets whether the file is made, and must not be there before. Then the last two settings do not matter.
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.wish(Wish::CreateNew, create_new)
    }

    /// Sets the permissions of a file that is made, less those that the process masks (`umask`); 0o666 if not set.
    pub fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.mode = mode;
        self
    }

    /// Sets further flags of `open(2)`, such as `O_NOFOLLOW`. Those for the access are ignored.
    pub fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        let direct = self.flags & libc::O_DIRECT;
        self.flags = flags & !libc::O_ACCMODE | direct;
        self
    }

    /// Sets whether transfers go past the page cache (`O_DIRECT`).
    ///
    /// They then have to be aligned, see [`AlignedBuf`](super::AlignedBuf).
    pub fn direct(&mut self, direct: bool) -> &mut OpenOptions {
        self.flags &= !libc::O_DIRECT;
        if direct {
            self.flags |= libc::O_DIRECT;
        }
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// If the options make no sense together, or what the system reports.
    ///
    /// # Cancel safety
    ///
    /// Safe: if the file is opened for a dropped future it is closed again. It may have been made or emptied.
    ///
    /// # Shard affinity
    ///
    /// The file belongs to the current shard.
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let path = system_path("open", path.as_ref())?;
        self.open_path(path).await
    }

    async fn open_path(&self, mut path: CString) -> io::Result<File> {
        let flags = match self.system_flags() {
            Ok(flags) => flags,
            Err(text) => return Err(FileError::invalid("open", Name::of_path(path), text).into()),
        };
        room_to_open().await;
        let fd = loop {
            let (result, returned) = Op::new(Open::new(path, flags, self.mode)).await;
            path = returned;
            if !is_interrupted(&result) {
                break result;
            }
        };
        let path = path_of(path);
        match fd {
            Ok(fd) => File::opened(FileRef::new(fd), Name::Path(path), flags).await,
            Err(cause) => Err(refused(path, cause, flags).into()),
        }
    }

    fn wish(&mut self, wish: Wish, is_wanted: bool) -> &mut OpenOptions {
        self.wishes &= !(wish as u8);
        if is_wanted {
            self.wishes |= wish as u8;
        }
        self
    }

    fn has(&self, wish: Wish) -> bool {
        self.wishes & wish as u8 != 0
    }

    /// The flags as the system takes them, or what is wrong with the wishes.
    fn system_flags(&self) -> Result<i32, String> {
        let access = match (
            self.has(Wish::Read),
            self.has(Wish::Write),
            self.has(Wish::Append),
        ) {
            (true, false, false) => libc::O_RDONLY,
            (false, true, false) => libc::O_WRONLY,
            (true, true, false) => libc::O_RDWR,
            (false, _, true) => libc::O_WRONLY | libc::O_APPEND,
            (true, _, true) => libc::O_RDWR | libc::O_APPEND,
            (false, false, false) => {
                return Err("no access was asked for: set `read`, `write` or `append`".to_owned());
            }
        };
        let creates = self.has(Wish::Create) || self.has(Wish::CreateNew);
        let can_write = self.has(Wish::Write) || self.has(Wish::Append);
        if (creates || self.has(Wish::Truncate)) && !can_write {
            return Err(
                "a file can only be made or emptied by who may write: set `write` as well"
                    .to_owned(),
            );
        }
        if self.has(Wish::Append) && self.has(Wish::Truncate) && !self.has(Wish::CreateNew) {
            return Err("`append` and `truncate` exclude each other: leave one out".to_owned());
        }
        let creation = if self.has(Wish::CreateNew) {
            libc::O_CREAT | libc::O_EXCL
        } else {
            let create = if self.has(Wish::Create) {
                libc::O_CREAT
            } else {
                0
            };
            let truncate = if self.has(Wish::Truncate) {
                libc::O_TRUNC
            } else {
                0
            };
            create | truncate
        };
        Ok(access | creation | self.flags)
    }
}

fn refused(path: std::path::PathBuf, cause: io::Error, flags: i32) -> FileError {
    let is_direct = Direct::is_asked_for(flags) && cause.raw_os_error() == Some(libc::EINVAL);
    let error = FileError::new("open", Name::Path(path), cause);
    if is_direct {
        return error.cure("its file system may not know O_DIRECT: open it without".to_owned());
    }
    error
}
