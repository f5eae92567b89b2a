//! Files and directories.
//!
//! The names are those of [`std::fs`]. What differs:
//!
//! * Nothing here blocks the shard. What the kernel can do for a ring is an operation of the shard's ring; the rest runs
//!   on the threads of the blocking pool.
//! * A [`File`] has no position: reads and writes say where they act, and any number of them can run at once.
//! * Buffers are passed by value and come back with the result, see [`buffer`](crate::buffer).
//! * Errors name the operation and the path, see [`FileError`].
//!
//! Reading order: [`FileError`], [`OpenOptions`], [`File`], [`Metadata`], the functions, then [`AlignedBuf`] for direct
//! transfers, and [`FileReader`] and [`FileWriter`] for files from start to end.
//!
//! # Examples
//!
//! ```
//! use greenroom_runtime::{Builder, fs};
//!
//! let runtime = Builder::new().shards(1).start()?;
//! # let dir = std::env::temp_dir().join(format!("greenroom-fs-{}", std::process::id()));
//! # let remove = dir.clone();
//! runtime.run_on(0, move || async move {
//!     fs::create_dir_all(dir.join("a/b")).await?;
//!     fs::write(dir.join("a/b/note"), "42").await?;
//!     fs::rename(dir.join("a/b/note"), dir.join("note")).await?;
//!     assert_eq!(fs::read_to_string(dir.join("note")).await?, "42");
//!     Ok::<(), std::io::Error>(())
//! })?;
//! # std::fs::remove_dir_all(remove)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aligned;
mod dir;
mod error;
mod file;
mod metadata;
mod options;
mod paths;
mod pool;
mod stream;
mod transfer;
mod whole;

pub use self::aligned::{AlignedBuf, AlignedBufError};
pub use self::dir::{DirEntry, ReadDir, read_dir, remove_dir_all};
pub use self::error::{FileError, raw_os_error};
pub use self::file::File;
pub use self::metadata::{DirectAlignment, FileType, Metadata};
pub use self::options::OpenOptions;
pub use self::paths::{
    canonicalize, copy, create_dir, create_dir_all, exists, hard_link, metadata, read_link,
    remove_dir, remove_file, rename, set_permissions, symlink, symlink_metadata,
};
pub use self::stream::{FileReader, FileWriter, StreamOptions};
pub use self::whole::{read, read_to_string, write};
