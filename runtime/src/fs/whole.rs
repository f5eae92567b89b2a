//! Whole files.

use std::io;
use std::path::Path;

use super::error::FileError;
use super::file::File;
use crate::buffer::IoBuf;

/// How much a file that does not tell its length is asked for at once, at first.
const GUESS: usize = 8 * 1024;

/// Reads a whole file.
///
/// # Errors
///
/// What the system reports, or [`OutOfMemory`](io::ErrorKind::OutOfMemory) if the file is larger than what the process
/// can have.
///
/// # Cancel safety
///
/// Safe: nothing was changed.
///
/// # Examples
///
/// ```
/// use greenroom_runtime::{Builder, fs};
///
/// let runtime = Builder::new().shards(1).start()?;
/// # let path = std::env::temp_dir().join(format!("greenroom-whole-{}", std::process::id()));
/// # let remove = path.clone();
/// runtime.run_on(0, move || async move {
///     fs::write(&path, "first line\n").await?;
///     assert_eq!(fs::read(&path).await?, b"first line\n");
///     assert_eq!(fs::read_to_string(&path).await?, "first line\n");
///     Ok::<(), std::io::Error>(())
/// })?;
/// # std::fs::remove_file(remove)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let file = File::open(path).await?;
    read_to_end(&file).await
}

/// Reads a whole file that is UTF-8.
///
/// # Errors
///
/// As for [`read`], and [`InvalidData`](io::ErrorKind::InvalidData) if it is not UTF-8.
///
/// # Cancel safety
///
/// As for [`read`].
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let file = File::open(path).await?;
    let bytes = read_to_end(&file).await?;
    String::from_utf8(bytes).map_err(|error| {
        let cause = io::Error::new(io::ErrorKind::InvalidData, error.utf8_error());
        file.error("read", cause).into()
    })
}

/// Writes a whole file: makes it, or replaces what is in it.
///
/// # Errors
///
/// What the system reports. A part of the contents may have been written.
///
/// # Cancel safety
///
/// Not safe: the file may be empty, or hold a part of the contents. To replace a file as a whole or not at all, write
/// another one and [`rename`](super::rename) it.
pub async fn write(path: impl AsRef<Path>, contents: impl IoBuf) -> io::Result<()> {
    let file = File::create(path).await?;
    file.write_all_at(contents, 0).await.0?;
    file.close().await
}

async fn read_to_end(file: &File) -> io::Result<Vec<u8>> {
    let len = file.metadata().await?.len();
    let mut bytes = Vec::new();
    // One more than there is, so that the end shows without a larger buffer. Files like those of /proc say zero.
    let mut room = usize::try_from(len).map_or(usize::MAX, |len| len.saturating_add(1));
    if len == 0 {
        room = GUESS;
    }
    loop {
        if bytes.len() == bytes.capacity() {
            reserve(file, &mut bytes, room)?;
        }
        let end = bytes.len();
        let (result, part) = file.read_at(bytes.slice(end..), end as u64).await;
        bytes = part.into_inner();
        if result? == 0 {
            return Ok(bytes);
        }
        room = bytes.len().max(GUESS);
    }
}

fn reserve(file: &File, bytes: &mut Vec<u8>, room: usize) -> io::Result<()> {
    bytes.try_reserve_exact(room).map_err(|_| {
        let text = format!("no memory for {room} more bytes of it; read it in parts");
        let cause = io::Error::new(io::ErrorKind::OutOfMemory, text);
        let error: FileError = file.error("read", cause);
        error.into()
    })
}
