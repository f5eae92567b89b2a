//! What went wrong with a file, and with which.
//!
//! An error of the system says "no such file or directory" and not which. Every error of this module is an
//! [`io::Error`] of the same kind with a [`FileError`] inside, which knows the operation, the path, the place in the
//! file and how far the operation came.

use std::borrow::Cow;
use std::ffi::{CString, OsString};
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What an [`io::Error`] of a file operation carries.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::fs::{self, FileError};
/// use greenroom_runtime::Builder;
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let error = fs::read("/no/such/file").await.unwrap_err();
///     assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
///     assert!(error.to_string().starts_with("open /no/such/file: No such file or directory"));
///
///     let details = FileError::of(&error).unwrap();
///     assert_eq!(details.path().unwrap(), "/no/such/file");
///     assert_eq!(details.raw_os_error(), Some(2));
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
pub struct FileError {
    operation: &'static str,
    name: Name,
    /// The other path of an operation that has two.
    to: Option<PathBuf>,
    offset: Option<u64>,
    progress: Option<Progress>,
    cause: io::Error,
    cure: Option<Cow<'static, str>>,
}

/// By what a file is known.
#[derive(Clone, Debug)]
pub(super) enum Name {
    Path(PathBuf),
    /// It was opened elsewhere.
    Descriptor(RawFd),
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    done: u64,
    wanted: u64,
}

impl FileError {
    /// Finds the details of an error that an operation on a file returned.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&FileError> {
        error.get_ref()?.downcast_ref()
    }

    /// Returns what was attempted: `open`, `read`, `rename` and so on.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Returns the path the file was opened by or the operation was about; `None` for a file opened elsewhere.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.name {
            Name::Path(path) => Some(path),
            Name::Descriptor(_) => None,
        }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }

    /// Returns the number the system gave, unless the error was found before the system was asked.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.cause.raw_os_error()
    }

    /// Returns how many bytes were read or written before the error.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.progress.map_or(0, |progress| progress.done)
    }

    pub(super) fn new(operation: &'static str, name: Name, cause: io::Error) -> FileError {
        let cure = cure(operation, &cause).map(Cow::Borrowed);
        FileError {
            operation,
            name,
            to: None,
            offset: None,
            progress: None,
            cause,
            cure,
        }
    }

    /// An argument that makes no sense; the text says which value and what to do about it.
    pub(super) fn invalid(operation: &'static str, name: Name, text: String) -> FileError {
        let cause = io::Error::new(io::ErrorKind::InvalidInput, text);
        FileError::new(operation, name, cause)
    }

    /// Names the second path.
    pub(super) fn to(mut self, to: PathBuf) -> FileError {
        self.to = Some(to);
        self
    }

    /// Says where in the file it happened.
    pub(super) fn at(mut self, offset: u64) -> FileError {
        self.offset = Some(offset);
        self
    }

    /// Says how far it came.
    pub(super) fn after(mut self, done: usize, wanted: usize) -> FileError {
        self.progress = Some(Progress {
            done: done as u64,
            wanted: wanted as u64,
        });
        self
    }

    /// Says what to change.
    pub(super) fn cure(mut self, cure: String) -> FileError {
        self.cure = Some(Cow::Owned(cure));
        self
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.name)?;
        if let Some(to) = &self.to {
            write!(f, " to {}", to.display())?;
        }
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        // The cause is part of the text and therefore no `source`: whoever prints one error sees it, and whoever
        // prints a chain sees it once.
        write!(f, ": {}", self.cause)?;
        if let Some(Progress { done, wanted }) = self.progress {
            write!(f, ", after {done} of {wanted} bytes")?;
        }
        if let Some(cure) = &self.cure {
            write!(f, "; {cure}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A program whose `main` returns this error shows its `Debug` form: the text is what its user needs.
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for FileError {}

impl Name {
    pub(super) fn of_path(path: CString) -> Name {
        Name::Path(path_of(path))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Path(path) => write!(f, "{}", path.display()),
            Name::Descriptor(fd) => write!(f, "descriptor {fd}"),
        }
    }
}

/// Returns the number the system gave for an error, also if it is inside a [`FileError`].
///
/// [`io::Error::raw_os_error`] knows only errors that carry nothing else.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::{Builder, fs};
///
/// let runtime = Builder::new().shards(1).start()?;
/// runtime.run_on(0, || async {
///     let error = fs::remove_dir("/proc").await.unwrap_err();
///     assert_eq!(error.raw_os_error(), None);
///     assert!(fs::raw_os_error(&error).is_some());
/// });
/// # Ok::<(), greenroom_runtime::StartError>(())
/// ```
#[must_use]
pub fn raw_os_error(error: &io::Error) -> Option<i32> {
    match FileError::of(error) {
        Some(details) => details.raw_os_error(),
        None => error.raw_os_error(),
    }
}

/// A path as the system takes it.
pub(super) fn system_path(operation: &'static str, path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| {
        let text = format!(
            "the path has a NUL byte at position {}, which no path can have",
            error.nul_position()
        );
        // `{:?}` in the text would double the backslashes of the path; the name shows it as it is.
        FileError::invalid(operation, Name::Path(path.to_owned()), text).into()
    })
}

/// The path that a string for the system was made from.
pub(super) fn path_of(path: CString) -> PathBuf {
    PathBuf::from(OsString::from_vec(path.into_bytes()))
}

/// What to do about errors whose text does not say it.
fn cure(operation: &str, cause: &io::Error) -> Option<&'static str> {
    let cure = match (cause.raw_os_error()?, operation) {
        (libc::EMFILE, _) => "raise the limit with `ulimit -n`, or close files",
        (libc::EFBIG, _) => {
            "raise the limit with `ulimit -f`, if it is not the most that the file system can hold"
        }
        (libc::EBADF, "read") => "open the file for reading",
        (libc::EBADF, "write") => "open the file for writing",
        (libc::ECANCELED, _) => "the shard is closing",
        _ => return None,
    };
    Some(cure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_disk() -> FileError {
        let cause = io::Error::from_raw_os_error(libc::ENOSPC);
        FileError::new("write", Name::Path("/x/y".into()), cause)
    }

    #[test]
    fn the_text_names_what_where_why_and_how_far() {
        let text = full_disk().at(4096).after(512, 8192).to_string();
        assert_eq!(
            text,
            "write /x/y at offset 4096: No space left on device (os error 28), after 512 of 8192 bytes"
        );
    }

    #[test]
    fn kind_and_number_survive_the_wrapping() {
        let error = io::Error::from(full_disk().after(512, 8192));
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(raw_os_error(&error), Some(libc::ENOSPC));
        assert_eq!(FileError::of(&error).unwrap().transferred(), 512);
        let plain = io::Error::from_raw_os_error(libc::EIO);
        assert_eq!(raw_os_error(&plain), Some(libc::EIO));
        assert!(FileError::of(&plain).is_none());
    }

    #[test]
    fn a_limit_comes_with_its_cure() {
        let cause = io::Error::from_raw_os_error(libc::EMFILE);
        let text = FileError::new("open", Name::Descriptor(7), cause).to_string();
        assert!(text.starts_with("open descriptor 7: "), "{text}");
        assert!(text.contains("ulimit -n"), "{text}");
    }

    #[test]
    fn a_nul_byte_is_found() {
        let error = system_path("open", Path::new("/a/b\0c")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(
            error.to_string().contains("NUL byte at position 4"),
            "{error}"
        );
    }
}
