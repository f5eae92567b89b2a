//! What can be done with paths.

use std::ffi::CString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{FileError, Name, path_of, system_path};
use super::metadata::Metadata;
use super::pool;
use crate::ring::ops::path_call::{PathCall, PathRequest};
use crate::ring::ops::stat::{Stat, StatTarget};
use crate::ring::{Op, is_interrupted};

/// Permissions of a directory that is made, less those that the process masks.
const DIR_MODE: libc::mode_t = 0o777;

/// Asks what is known about a file. Follows symbolic links.
///
/// # Errors
///
/// What the system reports: that there is no such file, or that the way to it is barred.
///
/// # Cancel safety
///
/// Safe.
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = system_path("stat", path.as_ref())?;
    stat(StatTarget::Path(path)).await
}

/// As [`metadata`], but of a symbolic link itself.
///
/// # Errors
///
/// As for [`metadata`].
///
/// # Cancel safety
///
/// Safe.
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = system_path("stat", path.as_ref())?;
    stat(StatTarget::Name(path)).await
}

/// Returns whether a path leads to something.
///
/// # Errors
///
/// If that cannot be told, for example because a directory on the way must not be searched.
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
///     assert!(fs::exists("/proc").await?);
///     assert!(!fs::exists("/no/such/file").await?);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn exists(path: impl AsRef<Path>) -> io::Result<bool> {
    match metadata(path).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Renames a file or directory, replacing what has the new name.
///
/// # Errors
///
/// What the system reports, for example that the two paths are on different file systems.
///
/// # Cancel safety
///
/// Safe: it happens or it does not.
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let path = system_path("rename", from.as_ref())?;
    let to = system_path("rename", to.as_ref())?;
    call("rename", PathRequest::Rename { path, to }).await
}

/// Gives a file one more name. Does not follow a symbolic link.
///
/// # Errors
///
/// What the system reports, for example that the new name is taken.
///
/// # Cancel safety
///
/// Safe: it happens or it does not.
pub async fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let path = system_path("link", original.as_ref())?;
    let link = system_path("link", link.as_ref())?;
    call("link", PathRequest::HardLink { path, link }).await
}

/// Makes a symbolic link that leads to a path, which need not be there.
///
/// # Errors
///
/// What the system reports, for example that the name of the link is taken.
///
/// # Cancel safety
///
/// Safe: it happens or it does not.
pub async fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let path = system_path("symlink", original.as_ref())?;
    let link = system_path("symlink", link.as_ref())?;
    call("symlink", PathRequest::Symlink { path, link }).await
}

/// Removes a name of a file. The file itself goes when nobody has it open any more.
///
/// # Errors
///
/// What the system reports, for example that it is a directory.
///
/// # Cancel safety
///
/// Safe: it happens or it does not.
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = system_path("remove", path.as_ref())?;
    call("remove", PathRequest::RemoveFile { path }).await
}

/// Removes an empty directory.
///
/// # Errors
///
/// What the system reports, for example that it is not empty.
///
/// # Cancel safety
///
/// Safe: it happens or it does not.
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = system_path("remove", path.as_ref())?;
    call("remove", PathRequest::RemoveDir { path }).await
}

/// Makes a directory.
///
/// # Errors
///
/// What the system reports: that the name is taken, or that the directory it would be in is not there.
///
/// # Cancel safety
///
/// Safe: it happens or it does not.
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = system_path("create", path.as_ref())?;
    let mode = DIR_MODE;
    call("create", PathRequest::CreateDir { path, mode }).await
}

/// Makes a directory, and those that lead to it, where they are not there yet.
///
/// # Errors
///
/// What the system reports, for example that something on the way is no directory.
///
/// # Cancel safety
///
/// Safe: the directories made so far stay.
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    // The directories to make, the outermost last.
    let mut missing = vec![path];
    while let Some(innermost) = missing.last().copied() {
        if innermost.as_os_str().is_empty() {
            // The working directory: all of a relative path was taken apart.
            missing.pop();
            continue;
        }
        let refused = match create_dir(innermost).await {
            Ok(()) => {
                missing.pop();
                continue;
            }
            Err(error) => error,
        };
        match innermost.parent() {
            Some(parent) if refused.kind() == io::ErrorKind::NotFound => {
                if missing.len() > path.components().count() {
                    // Somebody removes what this makes.
                    return Err(refused);
                }
                missing.push(parent);
            }
            // Somebody else may have made it.
            _ if is_dir(innermost).await => {
                missing.pop();
            }
            _ => return Err(refused),
        }
    }
    Ok(())
}

/// Finds the absolute path of a file, without symbolic links on the way.
///
/// # Errors
///
/// What the system reports: that there is no such file, or that the way to it is barred.
///
/// # Cancel safety
///
/// Safe.
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    on_pool("canonicalize", path.as_ref(), |path| {
        std::fs::canonicalize(path)
    })
    .await
}

/// Returns where a symbolic link leads to.
///
/// # Errors
///
/// What the system reports, for example that it is no symbolic link.
///
/// # Cancel safety
///
/// Safe.
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    on_pool("read link", path.as_ref(), |path| std::fs::read_link(path)).await
}

/// Sets who may do what with a file.
///
/// # Errors
///
/// What the system reports, for example that the file belongs to somebody else.
///
/// # Cancel safety
///
/// Safe: it happens or it does not, perhaps after the future was dropped.
pub async fn set_permissions(path: impl AsRef<Path>, permissions: Permissions) -> io::Result<()> {
    on_pool("set the permissions of", path.as_ref(), move |path| {
        std::fs::set_permissions(path, permissions.clone())
    })
    .await
}

/// Copies the contents and permissions of a file to another, which is made or replaced. Returns the number of bytes.
///
/// The system copies within the file system where it can.
///
/// # Errors
///
/// What the system reports. The other file may have been made, and hold a part of the contents. A file is not copied onto itself, by
/// whatever name: that would leave nothing of it.
///
/// # Cancel safety
///
/// Not safe: once begun it goes on after the future was dropped.
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let (from, to) = (from.as_ref(), to.as_ref());
    system_path("copy", from)?;
    system_path("copy", to)?;
    let paths = (from.to_owned(), to.to_owned());
    let copy = move || {
        if is_same_file(&paths.0, &paths.1) {
            let text = "both are the same file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        std::fs::copy(&paths.0, &paths.1)
    };
    let result = pool::call(copy).await;
    result.map_err(|cause| {
        let error = FileError::new("copy", Name::Path(from.to_owned()), cause);
        error.to(to.to_owned()).into()
    })
}

/// Whether two names lead to one file. What is not found is none, and has its error later.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Runs a call about one path on the pool.
async fn on_pool<T: Send + 'static>(
    operation: &'static str,
    path: &Path,
    call: impl Fn(&Path) -> io::Result<T> + Clone + Send + 'static,
) -> io::Result<T> {
    system_path(operation, path)?;
    let owned = path.to_owned();
    let result = pool::call(move || call(&owned)).await;
    result.map_err(|cause| FileError::new(operation, Name::Path(path.to_owned()), cause).into())
}

async fn is_dir(path: &Path) -> bool {
    metadata(path).await.is_ok_and(|found| found.is_dir())
}

async fn stat(mut target: StatTarget) -> io::Result<Metadata> {
    loop {
        let (result, returned) = Op::new(Stat::new(target)).await;
        target = returned;
        if !is_interrupted(&result) {
            return result.map(Metadata::new).map_err(|cause| {
                let (StatTarget::Path(path) | StatTarget::Name(path)) = target else {
                    unreachable!("asked about a path");
                };
                FileError::new("stat", Name::of_path(path), cause).into()
            });
        }
    }
}

async fn call(operation: &'static str, mut request: PathRequest) -> io::Result<()> {
    loop {
        let (result, returned) = Op::new(PathCall::new(request)).await;
        request = returned;
        if !is_interrupted(&result) {
            return result.map_err(|cause| {
                let (path, to) = paths_of(request);
                let error = FileError::new(operation, Name::of_path(path), cause);
                match to {
                    Some(to) => error.to(to).into(),
                    None => error.into(),
                }
            });
        }
    }
}

/// The path a request is about, and the second one if it has two.
fn paths_of(request: PathRequest) -> (CString, Option<PathBuf>) {
    match request {
        PathRequest::Rename { path, to } => (path, Some(path_of(to))),
        PathRequest::HardLink { path, link } | PathRequest::Symlink { path, link } => {
            (path, Some(path_of(link)))
        }
        PathRequest::RemoveFile { path }
        | PathRequest::RemoveDir { path }
        | PathRequest::CreateDir { path, .. } => (path, None),
    }
}
